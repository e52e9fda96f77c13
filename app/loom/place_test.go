package loom

import "testing"

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64", "2001:db8:0:0:ffff::2": "2001:db8::/64",
		"2001:db8:0:1::1": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64", "127.0.0.1": "127.0.0.1", "127.81.0.9": "127.0.0.1", "::ffff:127.3.2.1": "127.0.0.1", "": "", "somewhere": "somewhere",
	} {
		if got := PlaceOf(address); got != want {
			t.Errorf("%q counts as %q, want %q", address, got, want)
		}
	}
}

func TestNetworkOf(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2::1": "2001:db8:1::/48", "2001:db8:1:ffff::1": "2001:db8:1::/48",
		"2001:db8:2::1": "2001:db8:2::/48", "fe80::1%eth0": "fe80::/48", "127.81.0.9": "127.0.0.1", "somewhere": "somewhere",
	} {
		if got := NetworkOf(address); got != want {
			t.Errorf("%q is of %q, want %q", address, got, want)
		}
	}
}
