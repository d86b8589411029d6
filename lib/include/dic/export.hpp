#pragma once

#include <dic/shared/export.hpp>  // DIC_API
