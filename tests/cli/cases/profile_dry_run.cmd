# records that can be lowered, and ones that cannot
. "$T/lib.sh"
head -3 "$HELD" >r.json
echo '# a comment' >>r.json
echo '{"i": [["[\"nosuch\"]", "llvm", [], "", 0, []], [[], []]], "r": [[0.1], 0, 1, 1], "v": "v0.6"}' >>r.json
echo '{"i"' >>r.json
cdmpp-profile records --dry-run --tasks "$K" r.json; echo "status $?"
cdmpp-profile records --dry-run --tasks "$K" --json -q - <r.json; echo "status $?"
mkdir empty; cdmpp-profile records --dry-run --tasks "$K" empty; echo "status $?"
