# Which settings a time hangs on. Planted: stairs over 12 threads (spec 1.4 d), a knee at batch 32; junk means nothing.
P="cdmpp-partition correlate"
try() { "$@"; echo "exit $?"; }
awk 'BEGIN { print "threads,batch,junk,seconds"
  for (t = 1; t <= 16; t++) for (b = 8; b <= 64; b += 8)
    printf "%d,%d,%d,%.9g\n", t, b, (t * 31 + b * 17) % 11, 1e-3 * int((12 + t - 1) / t) * (1 + (b > 32 ? (b - 32) / 64 : 0)) }' >s.csv
$P --target seconds s.csv
$P --target seconds --axes batch,threads --json s.csv | grep -o '"rows":[0-9]*\|"name":"[a-z]*"\|"turns_at":[0-9]*\|"strong":[a-z]*'
$P --target seconds --strong 0.999 s.csv | awk '{ print $1, $NF }'
echo "--- four values: where it turns is known no better than between two of them"
printf 'n,seconds\n2,1\n4,1\n8,1.14\n16,5.14\n' >f.csv; $P --target seconds f.csv
$P --target seconds --json f.csv | grep -o '"turns_[a-z]*":[a-z0-9]*'
echo "--- two values: it rises, nothing tells how"
printf 'n,m,seconds\n1,1,12\n1,2,24\n2,1,6\n2,2,12\n3,1,4\n3,2,8\n4,1,3\n4,2,6\n' >f.csv; $P --target seconds --axes m f.csv; $P --target seconds --axes m --json f.csv | grep -o '"form":[a-z"]*'
echo "--- bad"
try $P s.csv
try $P --target seconds
try $P --target ms s.csv
try $P --target seconds --axes threads,nodes s.csv
try $P --target seconds --axes seconds s.csv
try $P --target seconds --axes batch,batch s.csv
try $P --target seconds --strong 2 s.csv
printf 'a,seconds\n1,1\n2,2\n' >t.csv; try $P --target seconds t.csv
printf 'a,seconds\n1,1\n2,NaN\n3,3\n' >t.csv; try $P --target seconds t.csv
printf 'a,seconds\n1,1\nx,2\n3,3\n' >t.csv; try $P --target seconds t.csv
printf 'seconds\n1\n2\n3\n' >t.csv; try $P --target seconds t.csv
printf 'a,seconds\n1,1\n2\n' >t.csv; try $P --target seconds t.csv
