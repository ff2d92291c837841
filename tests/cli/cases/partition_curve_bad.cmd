# Curves that cannot be.
P="cdmpp-partition curve"
try() { "$@"; echo "exit $?"; }
try $P
try $P --at 0 c.csv
try $P --at 1,,2 c.csv
try $P --level 1 c.csv
try $P --tolerance x c.csv
try $P --store s.db
try $P --dim 0.0 c.csv
try $P --store nowhere.db --operator x
try $P nowhere.csv
: >c.csv; try $P c.csv
printf 'n,seconds\n1,2\n' >c.csv; try $P c.csv
printf 'size,seconds\n1,nan\n' >c.csv; try $P c.csv
printf 'size,seconds\n1,1e-6\n2,-1\n' >c.csv; try $P c.csv
printf 'size,seconds\n1,1e-6\n2,2e-6\n' >c.csv; try $P c.csv
printf 'size,seconds\n1,1e-6\n2,2e-6\n3,3e-6\n' >c.csv; try $P c.csv --operator conv
printf 'operator\thost\nx\ty\n' >c.tsv; try $P c.tsv
