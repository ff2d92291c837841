. "$T/lib.sh"
plain cdmpp-extract --tasks "$K" --print "$HELD:41"
