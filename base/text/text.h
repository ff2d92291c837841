/* The door of base/text: other rooms include this header and no other of the room.
 *
 * Text formats. JSON: a tree (json), typed reads with errors (json_typed.c), a writer (json_write). YAML as a tree with places
 * (yaml), the list of mistakes found in a file (diag), and configurations that are one table of keys (conf). Names of enums as
 * "a|b|c" (enum_names), texts numbered in order of appearance (dict), fields of a CSV line (csv_fields). */
#ifndef CD_BASE_TEXT_DOOR_H
#define CD_BASE_TEXT_DOOR_H
#include "base/text/conf.h"
#include "base/text/csv_fields.h"
#include "base/text/diag.h"
#include "base/text/dict.h"
#include "base/text/enum_names.h"
#include "base/text/json.h"
#include "base/text/json_write.h"
#include "base/text/yaml.h"
#endif
