/* size_list -- the sizes at which a curve is measured: "batch=1,4,8" or "input=64,128,224". */
#ifndef CD_SIZE_LIST_H
#define CD_SIZE_LIST_H
#include <stdbool.h>
#include <stddef.h>

enum { CD_SIZE_LIST_MAX = 32, CD_SIZE_LIST_LARGEST = 1048576 };

typedef struct cd_size_list {
    bool input;                 /* sizes of the input; else batch sizes */
    size_t n;
    int v[CD_SIZE_LIST_MAX];    /* (n) ascending */
} cd_size_list;

/* False: the text is not 2 to CD_SIZE_LIST_MAX ascending numbers from 1 to CD_SIZE_LIST_LARGEST behind "batch=" or "input=". */
bool cd_size_list_parse(const char *text, cd_size_list *out);
#endif
