# Laws of curves: planted ones are found again; tables of curves, CSV, a store.
P="cdmpp-partition curve"
# a flat one, a hinge at 40, a line, stairs of 16, and a curve that falls as often as it rises
awk 'BEGIN { print "size,seconds,curve"
  for (n = 1; n <= 100; n++) {
    e = 1 + ((n * 7919) % 13 - 6) / 600
    printf "%d,%.9g,flat\n%d,%.9g,hinge\n", n, 3e-6 * e, n, (2e-6 + (n > 40 ? 5e-8 * (n - 40) : 0)) * e
    printf "%d,%.9g,line\n%d,%.9g,stairs\n", n, (1e-6 + 2e-7 * n) * e, n, (1e-6 + 4e-6 * int((n + 15) / 16)) * e
    printf "%d,%.9g,wild\n", n, n % 2 ? 1e-6 : 3e-6 } }' >c.csv
$P c.csv --at 20,200 --svg c.svg
grep -o '<path class="m c[0-9]"' c.svg | sort | uniq -c
$P c.csv --operator hinge --json | grep -o '"form":"[a-z]*"\|"turns_at":[0-9][0-9]'
echo "--- a table of curves; a bad line is left out"
printf 'host\toperator\tdevice_id\tshape\tpoints_n:ms\n' >c.tsv
printf 'here\tnn.dense\t0\t((-1, 8), (8, 8))\t1:0.001 2:0.002 4:0.004 8:0.008\n' >>c.tsv
printf 'here\tnn.dense\t0\t((-1, 9), (9, 9))\t1:0.001 2:oops\n' >>c.tsv
printf 'here\tnn.relu\t-1\t((-1, 8),)\t1:0.001 2:0.001 4:0.001 8:0.001\n' >>c.tsv
printf 'here\tnn.relu\t-1\t((-1, 9),)\t1:0.001\n' >>c.tsv
$P c.tsv; echo "status $?"
$P c.tsv --limit 1; echo "status $?"
echo "--- the same out of a store"
printf 'set\thost\toperator\tdevice_id\tvaried\tshape\tpoints_n:ms\n' >s.tsv
printf 'a\there\tnn.dense\t0\t((2, 2), (0, 0))\t((-1, 8), (8, 8))\t1:0.001 2:0.002 4:0.004 8:0.008 16:0.016\n' >>s.tsv
printf 'a\there\tadd\t0\t((2, 2), (0, 0))\t((-1, 8), (-1, 8))\t1:0.002 2:0.002 4:0.002 8:0.004 16:0.008 32:0.016\n' >>s.tsv
cdmpp-profile store import --store s.db --form curves s.tsv >/dev/null 2>&1; echo "status $?"
$P --store s.db --operator nn.dense --at 16
$P --store s.db --operator add
$P --store s.db --operator nn.dense --device here --json | grep -o '"form":"[a-z]*"\|"points":[0-9]*'
$P --store s.db --operator nn.dense --dim 1.1; echo "status $?"
$P --store s.db --operator nn.dense --dim x; echo "status $?"
$P --store s.db --operator nn.dense --device there; echo "status $?"
