# Install rules, in two components. program: the program, its manual, completion and guides. library: libdic, its public headers,
# and what find_package(dic) and pkg-config find.
include(CMakePackageConfigHelpers)

set(DIC_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/dic)

set(codecs)
if(TARGET dic_codecs)
  set(codecs dic_codecs) # loaded by libdic, from beside it
endif()
# The same RUNPATH in the build folder. CMake would otherwise end it with ":" there, to have it replaced later, and the loader takes
# that for the current folder.
set_target_properties(dic dic_program ${codecs} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(TARGETS dic_program)
if(TARGET dic_mpi)
  install(TARGETS dic_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${PROJECT_BINARY_DIR}/help/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${PROJECT_BINARY_DIR}/help/dic.bash RENAME dic
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_BINARY_DIR}/help/_dic DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_BINARY_DIR}/help/dic.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES LICENSE README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
install(TARGETS dic EXPORT dicTargets)
if(codecs)
  install(TARGETS ${codecs} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(DIC_WITH_CUDA AND NOT BUILD_SHARED_LIBS)
  install(TARGETS dic_kernels EXPORT dicTargets)
endif()
install(DIRECTORY lib/include/dic DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "dic.h")
install(FILES ${DIC_PUBLIC_SHARED_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dic/shared)
install(FILES ${PROJECT_BINARY_DIR}/generated/dic/version.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dic)
install(EXPORT dicTargets NAMESPACE dic:: DESTINATION ${DIC_PACKAGE_DIR})

configure_package_config_file(cmake/dicConfig.cmake.in ${PROJECT_BINARY_DIR}/dicConfig.cmake
  INSTALL_DESTINATION ${DIC_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dicConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dicConfig.cmake ${PROJECT_BINARY_DIR}/dicConfigVersion.cmake
  DESTINATION ${DIC_PACKAGE_DIR})
include(DicPkgConfig)
unset(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME)
