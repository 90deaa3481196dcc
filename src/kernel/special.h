/*
 * Special functions of one real number or several, in double: about 1e-14
 * off, relative to the value or to what it is a difference of. Kernels for
 * narrower types round what they get.
 */
#ifndef KERNEL_SPECIAL_H
#define KERNEL_SPECIAL_H

#include "base/base.h"

double special_digamma(double x);
/* The regularised incomplete gamma function P(a, x), and Q = 1 - P. */
double special_igamma(double a, double x);
double special_igammac(double a, double x);
/* dP(a, x) / da. */
double special_igamma_grad_a(double a, double x);
/* How a sample x of the gamma distribution changes with its parameter a. */
double special_gamma_sample_grad(double a, double x);
/* Hurwitz's: the sum of (q + k)^-s over k. */
double special_zeta(double s, double q);
/* The n-th derivative of digamma. */
double special_polygamma(double n, double x);
/* The regularised incomplete beta function. */
double special_betainc(double a, double b, double x);

#endif
