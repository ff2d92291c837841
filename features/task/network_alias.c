/* TenSet names a network by model and input shape, "(resnet_50,[(1,3,224,224)])". Configurations
 * name it shorter; this decides what a short name means. */
#include "features/task/task.h"

#include <stdlib.h>
#include <string.h>

cd_str cd_network_alias_base(const char *network) {
    const char *comma = network[0] == '(' ? strchr(network, ',') : NULL;
    if (!comma) return (cd_str){network, strlen(network)};
    return (cd_str){network + 1, (size_t)(comma - network - 1)};
}

int64_t cd_network_alias_batch(const char *network) {
    const cd_str base = cd_network_alias_base(network);
    if (base.p == network) return -1;
    const char *digits = base.p + base.n + strcspn(base.p + base.n, "0123456789");
    return *digits ? strtoll(digits, NULL, 10) : -1;
}

bool cd_network_alias_answers(const char *network, const char *asked) {
    const cd_str base = cd_network_alias_base(network);
    if (!strcmp(network, asked)) return true;
    if (strncmp(asked, base.p, base.n) != 0) return false;
    const char *rest = asked + base.n;
    if (!*rest || !strcmp(rest, "_")) return true;
    if (strncmp(rest, "_bs", 3) != 0 || !rest[3] || rest[3 + strspn(rest + 3, "0123456789")] ||
        strlen(rest) > 15)
        return false;
    return strtoll(rest + 3, NULL, 10) == cd_network_alias_batch(network);
}
