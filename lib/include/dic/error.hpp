#pragma once

#include <dic/shared/error.hpp>  // Error, UsageError, FileError, DeviceError, Cancelled
