/*
 * Discrete Fourier transforms of one line of complex numbers, in double.
 */
#ifndef KERNEL_FFT_H
#define KERNEL_FFT_H

#include <complex.h>

#include "base/base.h"

#undef I

/* What is known of a length before any line is seen. Constant once made: any
 * number of threads may use it. */
struct fft_plan;

/* For n >= 1; NULL without memory. */
struct fft_plan *fft_plan_new(int64_t n);
void fft_plan_free(struct fft_plan *p); /* accepts NULL */
/* How many numbers of room fft_run() wants. */
int64_t fft_plan_room(const struct fft_plan *p);
/* out[k] = sum of in[j] e^(-2 pi i j k / n). in is not changed. */
void fft_run(const struct fft_plan *p, const double complex *in,
             double complex *out, double complex *room);

#endif
