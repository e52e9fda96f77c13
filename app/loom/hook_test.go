package loom

import (
	"net/netip"
	"testing"
)

func TestMayCall(t *testing.T) {
	t.Parallel()
	allowed := []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("fd00:9::/32")}
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.255.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "::7f00:1": false, "0.0.0.0": false, "::": false,
		"10.0.0.1": false, "10.9.1.2": true, "::ffff:10.9.1.2": true, "172.16.0.1": false, "192.168.1.1": false, "100.64.0.1": false,
		"169.254.169.254": false, "fe80::1%eth0": false, "fd00::1": false, "fd00:9::1": true, "224.0.0.1": false, "ff02::1": false,
		"255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.2.1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false,
	} {
		if got := MayCall(netip.MustParseAddr(addr), allowed); got != want {
			t.Errorf("MayCall(%s) = %t", addr, got)
		}
	}
	if MayCall(netip.Addr{}, allowed) {
		t.Error("no address may be called")
	}
}
