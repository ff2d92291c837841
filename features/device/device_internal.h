/* What the files of descriptions share. */
#ifndef CD_DEVICE_INTERNAL_H
#define CD_DEVICE_INTERNAL_H
#include "features/device/device.h"

/* A name under which a device is found: its own or an alias. */
typedef struct cd_device_handle {
    const char *text, *bare; /* as written; letters and digits only */
    const cd_yaml *at;       /* in the file */
    size_t device;
} cd_device_handle;

struct cd_device_table {
    cd_arena arena;
    cd_device *device;
    cd_device_handle *name;
    size_t n, n_name;
    size_t own;              /* the first ones: of the file that was named */
    cd_buf unusual;          /* a line for each number that is */
    cd_buf replaced;         /* a line: which descriptions of `behind` others are in the place of */
    cd_device_table *behind; /* where the others live; NULL: there are none */
};

#endif
