# Cross-compiles for 64-bit Arm on x86-64 (g++-aarch64-linux-gnu) against an unpacked Debian 12 in DIC_SYSROOT, which
# .ci/test-arm64 makes. Programs that were just built run under qemu.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DIC_SYSROOT)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${DIC_SYSROOT})

set(CMAKE_SYSROOT ${DIC_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${DIC_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${DIC_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${DIC_SYSROOT}/usr/share/pkgconfig)
# Debian's HDF5 lies where only its own compiler script looks, and that is a program of the other architecture.
set(HDF5_NO_FIND_PACKAGE_CONFIG_FILE ON)
set(HDF5_ROOT /usr/lib/aarch64-linux-gnu/hdf5/serial)
set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,-rpath-link,${DIC_SYSROOT}/usr/lib/aarch64-linux-gnu:${DIC_SYSROOT}/lib/aarch64-linux-gnu)
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${CMAKE_EXE_LINKER_FLAGS_INIT})
