# What `cmake --install` lays down: the program, both libraries, the headers,
# man pages, and what pkg-config and find_package(muster) need.
if(NOT TARGET muster_shared)
  return()
endif()
include(CMakePackageConfigHelpers)

install(TARGETS muster_cli muster_static muster_shared)
install(DIRECTORY include/muster DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
file(GLOB MAN1 CONFIGURE_DEPENDS docs/man/*.1)
install(FILES ${MAN1} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# The prefix is found from where the file lies, so that a tree can be moved.
file(RELATIVE_PATH PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/muster.pc.in muster.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/muster.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
configure_package_config_file(cmake/muster-config.cmake.in muster-config.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/muster-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/muster-config.cmake
  ${CMAKE_BINARY_DIR}/muster-config-version.cmake DESTINATION ${package_dir})
