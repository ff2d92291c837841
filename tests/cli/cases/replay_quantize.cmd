# a network in 8 bits against float: what is counted is exact, errors lie in a range, times are there; what does not go together is refused
# Long: no sanitizer, one processor.
export XDG_CACHE_HOME=$PWD/cache
unset CDMPP_MODELS
exec 2>&1
q() { cdmpp-replay --network conv2d --input-size 14 --quantize int8 --calibrate 4 --compare 8 "$@"; }
q --json >a.json || exit
sed 's/,"left":.*//' a.json | grep -o '"schema":"[^"]*"\|"inputs":[0-9]*\|"calibration_inputs":[0-9]*\|"ranges":[0-9]*\|"rows":[0-9]*\|"form":"[^"]*"\|"layers":[0-9]*\|"int8_layers":[0-9]*\|"int8_flop_share":[0-9.]*\|"in_float":\[\]'
awk 'match($0, /"error_rms":[0-9.e-]*/) { v = substr($0, RSTART + 12, RLENGTH - 12) + 0; print "error rms in range:", (v > 1e-4 && v < 0.1) }' a.json
grep -c '"pass_s"' a.json
echo "--- times, in text"
q --trials 1 --run | sed -E 's/ +[0-9.]+ ms/ T/g; s/ +[0-9.]+ \([0-9.]+ \.\. [0-9.]+\)/ R/; s/[0-9]+ classes, [0-9]+ centred/N classes, N centred/; s/ +[0-9.]+ % +[0-9.]+ % +[0-9.e-]+ +[0-9.e-]+ T/ P P E E T/; s/^[0-9]+ turns; others leave [0-9]+ %/N turns; others leave P/'
echo "--- what does not go"
cdmpp-replay --network depthwise-conv2d --input-size 14 --quantize int8; echo "exit $?"
cdmpp-replay --network resnet-18 --quantize int4; echo "exit $?"
cdmpp-replay --network resnet-18 --network vgg-16 --quantize int8; echo "exit $?"
cdmpp-replay --network resnet-18 --quantize int8 --csv; echo "exit $?"
cdmpp-replay --network resnet-18 --quantize int8 --schedules no.json; echo "exit $?"
cdmpp-replay --network resnet-18 --quantize int8 --gap-us 0; echo "exit $?"
cdmpp-replay --network resnet-18 --quantize int8 --cpu-time; echo "exit $?"
cdmpp-replay --network resnet-18 --calibrate 3; echo "exit $?"
exit 0
