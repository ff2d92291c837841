/* The door of base/text: other rooms include this header and no other of the room.
 *
 * Text formats: JSON, YAML, tables of configuration keys, names of enums, CSV fields. */
#ifndef CD_BASE_TEXT_DOOR_H
#define CD_BASE_TEXT_DOOR_H
#include "base/text/conf.h"
#include "base/text/csv_fields.h"
#include "base/text/dict.h"
#include "base/text/enum_names.h"
#include "base/text/json.h"
#include "base/text/yaml.h"
#include "base/text/json_write.h"
#endif
