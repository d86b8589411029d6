/* What headers of a newer C library ask for and glibc 2.31 does not have. Shared pointers look at this before they count: 0 says that
   there may be other threads, so they count atomically, which is right with and without. */
char __libc_single_threaded = 0;
