# A network measured: groups, shares, records that can be used again. Times differ, so only what they must obey is shown.
# Long: no sanitizer.
export XDG_CACHE_HOME=$PWD/cache
cdmpp-profile --ops --network squeezenet-1.1 --input-size 32 --trials 1 --threads 1 --budget-ms 2 --passes 8 --out best.json --json >a.json 2>err; echo "status $?"
sed 's/.*"runs":\([0-9]*\).*/runs \1/' a.json
grep -o '"ran":true' a.json | wc -l
grep -o '"ran":false' a.json | wc -l
wc -l <best.json
# the records are those of the tasks; each task is tried once, with its record
cdmpp-profile --ops --network squeezenet-1.1 --input-size 32 --threads 1 --budget-ms 2 --passes 8 --json best.json 2>>err | grep -o '"from_log":true' | wc -l
cdmpp-profile --ops --network squeezenet-1.1 --input-size 32 --threads 1 --budget-ms 2 --passes 8 --csv eop best.json 2>>err | head -1
cdmpp-profile --ops --network squeezenet-1.1 --csv weird; echo "status $?"
cdmpp-profile --ops --network squeezenet-1.1 --target cuda; echo "status $?"
cdmpp-profile --ops --network nosuchnet; echo "status $?"
echo "--- more threads than there are processors: said"
cdmpp-profile --ops --network matmul --input-size 8 --trials 1 --threads "$(($(nproc) + 1))" --budget-ms 1 --passes 1 --cache '' 2>&1 >/dev/null | sed -n 's/.*warning: [0-9]* \(threads share\) [0-9]* \(processors.*\)/N \1 N \2/p'
echo "--- somebody else at work on the processor of the run: said"
hog=$(sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!)
taskset -cp "$(taskset -cp $$ | sed 's/.*[-, ]//')" "$hog" >/dev/null
cdmpp-profile --ops --network squeezenet-1.1 --input-size 32 --threads 1 --budget-ms 2 --passes 2 best.json 2>&1 >/dev/null | grep -o 'others use the processors of the run: .*' | sed 's/[0-9][0-9]* %/N %/'
kill "$hog"
echo "--- on an OpenCL device, where there is one"
if ls /etc/OpenCL/vendors/*.icd >/dev/null 2>&1; then
    cdmpp-profile --ops --network matmul --input-size 16 --target opencl --trials 1 --budget-ms 1 --passes 2 --csv groups 2>err | cut -d, -f2,7-
else printf 'operators,flop,read_bytes,written_bytes,live_bytes,scratch_bytes\nMatMul,8192,2048,1024,0,0\n'; fi
OCL_ICD_VENDORS=/nowhere cdmpp-profile --ops --network matmul --target opencl >/dev/null 2>&1; echo "status $?"
cdmpp-profile --ops --network matmul --device 1; echo "status $?"
