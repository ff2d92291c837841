/* What the files of predictor/network_report share. */
#ifndef CD_NETWORK_REPORT_INTERNAL_H
#define CD_NETWORK_REPORT_INTERNAL_H
#include "predictor/network_report/network_report.h"

/* Of the case's device; NaN and "" without prices. */
cd_network_price cd_network_report_hour(const cd_network_report *p,
                                        const cd_network_estimate_case *c);
/* Of a million inferences; NaN: price or batch unknown. */
double cd_network_report_price(const cd_network_report *p, const cd_network_estimate_case *c);
/* Watt that the case's device takes at most; NaN: its description does not say. */
double cd_network_report_power(const cd_network_report *p, const cd_network_estimate_case *c);
/* Joule of an inference at most; NaN: not asked for, power or batch unknown. */
double cd_network_report_energy(const cd_network_report *p, const cd_network_estimate_case *c);
/* The cheapest case of this network under the deadline, of those that fit; NULL: none. */
const cd_network_estimate_case *cd_network_report_cheapest(const cd_network_report *p,
                                                           const char *network);
/* The one of least energy. */
const cd_network_estimate_case *cd_network_report_thriftiest(const cd_network_report *p,
                                                             const char *network);

/* ---- cells of tables for people (network_report_prices.c) ---- */
enum { CD_NETWORK_REPORT_CELL = 24 };

/* ---- lines below the table (network_report_prices.c): of each network the device that costs
 * least, that takes the least energy ---- */
#endif
