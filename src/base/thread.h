/*
 * Threads of ours in a program that may not be ours: they take no signals,
 * which are for the program's own threads. A Ctrl-C that landed on one of them
 * would not wake the Python that waits for it.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

#include "base/base.h"

/* As pthread_create(). */
int thread_start(pthread_t *ret, const pthread_attr_t *attr,
                 void *(*run)(void *), void *arg) MUST_USE;

#endif
