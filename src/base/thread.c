#include "base/thread.h"

#include <signal.h>

int thread_start(pthread_t *ret, const pthread_attr_t *attr,
                 void *(*run)(void *), void *arg)
{
    sigset_t all, old;
    int error;

    /* A new thread inherits the mask: there is no moment without it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    error = pthread_create(ret, attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}
