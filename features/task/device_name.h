/* device_name -- which device a record was measured on. */
#ifndef CD_DEVICE_NAME_H
#define CD_DEVICE_NAME_H
#include "base/core/core.h"
#include "base/text/text.h"

/* "zen5" of the target "llvm -model=zen5", else the folder of the file `source`, else "unknown". Part of one of both. */
cd_str cd_device_name_of(cd_str target, const char *source);
#endif
