# The Python package: build/python is ready for PYTHONPATH. One extension of the
# stable ABI, with the library inside; any Python from 3.8 on takes it. Without
# Python's headers there is no package.
find_package(Python3 COMPONENTS Interpreter Development.Module)
if(NOT Python3_Development.Module_FOUND)
  message(STATUS "No Python headers: the package muster is left out")
  return()
endif()
set(package ${CMAKE_BINARY_DIR}/python/muster)

file(GLOB extension CONFIGURE_DEPENDS python/*.c)
add_library(muster_python MODULE ${extension})
target_include_directories(muster_python SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
target_link_libraries(muster_python PRIVATE muster_static)
target_link_options(muster_python PRIVATE -Wl,--as-needed
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/python.map)
set_target_properties(muster_python PROPERTIES PREFIX "" OUTPUT_NAME _muster
  SUFFIX .abi3.so LIBRARY_OUTPUT_DIRECTORY ${package})

file(GLOB modules CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/python/muster
  python/muster/*.py)
foreach(module ${modules})
  add_custom_command(OUTPUT ${package}/${module}
    COMMAND ${CMAKE_COMMAND} -E copy
            ${CMAKE_SOURCE_DIR}/python/muster/${module} ${package}/${module}
    DEPENDS python/muster/${module})
  list(APPEND copies ${package}/${module})
endforeach()
add_custom_target(muster_python_modules ALL DEPENDS ${copies})
