# cpack: one .deb for all of Debian 11 to 13 and Ubuntu 20.04 to 24.04, and one .tar.gz for everything else. `.ci/build-packages`
# makes them, and what they need: DIC_PACKAGE_FOLDER, and a second build with a shared libdic in DIC_PACKAGE_LIBRARY.
set(DIC_PACKAGE_LIBRARY "" CACHE PATH "Build folder with a shared libdic that goes into the packages, too")
if(NOT DIC_PACKAGE_FOLDER)
  return()
endif()

# Written by cmake/packages/write-sbom once everything is linked.
install(DIRECTORY ${PROJECT_BINARY_DIR}/ingredients/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME dic)
set(CPACK_PACKAGE_VENDOR "The dic authors")
set(CPACK_PACKAGE_CONTACT "The dic authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Displacement and strain from images (digital image correlation)")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};dic;program;/")
if(DIC_PACKAGE_LIBRARY)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS "${DIC_PACKAGE_LIBRARY};dic;library;/")
endif()
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/dist)
string(REGEX REPLACE "-linux-gnu$" "" processor ${CMAKE_LIBRARY_ARCHITECTURE})
set(CPACK_PACKAGE_FILE_NAME dic-${PROJECT_VERSION}-linux-${processor})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
if(processor STREQUAL "aarch64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.31), libstdc++6 (>= 10), libgcc-s1")
# Fonts for `dic plot`, other videos than AVI.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "fontconfig-config, fonts-dejavu-core")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "ffmpeg")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
