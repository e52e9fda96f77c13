package loom

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) []ReachNetwork {
	t.Helper()
	networks, err := ParseReach(text)
	if err != nil {
		t.Fatal(err)
	}
	return networks
}

// TestReach walks every class of address with the tenant's switch off and on, and with
// what the operator adds and takes away.
func TestReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		reach Reach
		yes   string
		no    string
	}{
		{"public only", Reach{}, "8.8.8.8 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808",
			"127.0.0.1 127.255.0.1 ::1 ::ffff:127.0.0.1 ::7f00:1 0.0.0.0 :: 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 198.18.0.1 169.254.169.254 ::ffff:169.254.169.254 " +
				"fe80::1%eth0 fd00::1 fec0::1 224.0.0.1 ff02::1 255.255.255.255 240.0.0.1 192.0.2.1 64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1 " +
				"fd00:ec2::254 fd20:ce::254 100.100.100.200 168.63.129.16 192.0.0.192"},
		{"private networks too", Reach{Private: true}, "8.8.8.8 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 198.18.0.1 fd00::1 fec0::1 ::ffff:10.0.0.1 64:ff9b::a00:1",
			"127.0.0.1 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 169.254.169.254 64:ff9b::a9fe:a9fe fe80::1 0.0.0.0 :: fd00:ec2::254 fd20:ce::254 100.100.100.200 168.63.129.16 192.0.0.192 224.0.0.1 240.0.0.1 2002:a00:1::"},
		{"named", Reach{Networks: parse(t, "10.9.0.0/16, fd00:9::/32,127.0.0.1")}, "10.9.1.2 ::ffff:10.9.1.2 64:ff9b::a09:102 fd00:9::1 127.0.0.1 ::ffff:127.0.0.1 8.8.8.8", "10.8.0.1 127.0.0.2 fd00::1 ::1"},
		{"taken away", Reach{Private: true, Networks: parse(t, "!10.0.0.0/8,10.9.0.0/16,!10.9.9.9, !8.8.8.0/24")}, "10.9.1.2 192.168.0.1 8.8.4.4", "10.0.0.1 10.9.9.9 8.8.8.8 ::ffff:10.9.9.9"},
		{"the narrowest decides in any order", Reach{Networks: parse(t, "203.0.113.0/24,!0.0.0.0/0")}, "203.0.113.9 2606:4700::1111", "8.8.8.8 10.0.0.1"},
		{"of two alike the refusal", Reach{Networks: parse(t, "10.0.0.0/8,!10.0.0.0/8,10.0.0.0/8")}, "8.8.8.8", "10.0.0.1"},
		{"local machines", Reach{Private: true, LocalNetworks: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}, Machine: netip.MustParseAddr("10.200.1.5")}, "10.200.1.5 10.0.0.1", "10.200.1.6 10.200.0.1"},
		{"local machines that are named", Reach{Networks: parse(t, "10.200.1.0/24"), LocalNetworks: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}}, "10.200.1.6", "10.200.2.1"},
		{"anywhere", Anywhere(), "127.0.0.1 ::1 169.254.169.254 10.0.0.1 8.8.8.8 0.0.0.0", ""},
	} {
		c.reach.host = func() ([]netip.Addr, error) { return nil, nil } // whatever this one's are
		for want, list := range map[bool]string{true: c.yes, false: c.no} {
			for addr := range strings.FieldsSeq(list) {
				if got := c.reach.May(netip.MustParseAddr(addr)); got != want {
					t.Errorf("%s: May(%s) = %t", c.name, addr, got)
				}
			}
		}
		if c.reach.May(netip.Addr{}) && c.name != "anywhere" {
			t.Errorf("%s: no address may be connected to", c.name)
		}
	}
	for _, text := range []string{"10.0.0.0/33", "host", "!", "::ffff:10.0.0.0/104", "fe80::1%eth0", "-10.0.0.0/8"} {
		if got, err := ParseReach(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	if got, err := ParseReach(" , 10.1.2.3/8 ,"); err != nil || len(got) != 1 || got[0].Network.String() != "10.0.0.0/8" {
		t.Errorf("%v, %v", got, err)
	}
}

// TestReachSaysWhatHelps: a refusal names the address and who can allow it.
func TestReachSaysWhatHelps(t *testing.T) {
	t.Parallel()
	reach := Reach{Networks: parse(t, "!8.8.8.8"), LocalNetworks: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}}
	for address, words := range map[string][]string{
		"10.0.0.1:443": {"10.0.0.1 ", "superadmin", "LOOM_PROVIDER_NETWORKS"}, "[::1]:22": {"::1 ", "LOOM_PROVIDER_NETWORKS"}, "8.8.8.8:1": {"8.8.8.8 ", "LOOM_PROVIDER_NETWORKS"},
		"169.254.169.254:80": {"169.254.169.254 ", "metadata"}, "10.200.0.9:22": {"10.200.0.9 ", "local machines"}, "nonsense": {"nonsense"},
	} {
		err := reach.Control(t.Context(), "tcp", address, nil)
		var refused *RefusedAddress
		if !errors.As(err, &refused) {
			t.Errorf("%s gave %v", address, err)
			continue
		}
		for _, word := range words {
			if !strings.Contains(refused.Error(), word) {
				t.Errorf("%s: %q lacks %q", address, refused, word)
			}
		}
	}
	if strings.Contains(reach.Check(netip.MustParseAddr("127.0.0.1")).Error(), "superadmin") {
		t.Error("no switch of a tenant opens loopback addresses")
	}
}

// TestReachOfThisHost: nobody reaches the addresses of the host that Loom runs on, unless
// the operator names them; its machines are reached all the same.
func TestReachOfThisHost(t *testing.T) {
	t.Parallel()
	mine := func() ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("2606:4700::1111")}, nil
	}
	own := netip.MustParseAddr("10.200.1.5")
	for _, c := range []struct {
		name    string
		reach   Reach
		yes, no string
	}{
		{"public only", Reach{host: mine}, "8.8.8.9 2606:4700::1112", "8.8.8.8 ::ffff:8.8.8.8 64:ff9b::808:808 2606:4700::1111 10.0.0.5"},
		{"private networks too", Reach{host: mine, Private: true}, "10.0.0.6", "8.8.8.8 10.0.0.5 64:ff9b::a00:5"},
		{"named", Reach{host: mine, Networks: parse(t, "8.8.8.8,10.0.0.0/8,!10.0.0.5")}, "8.8.8.8 10.0.0.6", "2606:4700::1111 10.0.0.5"},
		{"a machine of this host", Reach{host: mine, LocalNetworks: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}, Machine: own}, "10.200.1.5", "10.200.1.1"},
		{"where nobody can say", Reach{host: func() ([]netip.Addr, error) { return nil, errors.New("no sockets") }, Machine: own}, "10.200.1.5", "8.8.4.4"},
	} {
		for want, list := range map[bool]string{true: c.yes, false: c.no} {
			for addr := range strings.FieldsSeq(list) {
				if got := c.reach.May(netip.MustParseAddr(addr)); got != want {
					t.Errorf("%s: May(%s) = %t", c.name, addr, got)
				}
			}
		}
	}
	if err := (Reach{host: mine}).Check(netip.MustParseAddr("8.8.8.8")); !strings.Contains(err.Error(), "8.8.8.8 is an address of the host") || !strings.Contains(err.Error(), "LOOM_PROVIDER_NETWORKS") {
		t.Error(err)
	}
}

// TestHostAddresses: without more said it is the interfaces that count, also those of
// loopback devices; a connection to one is refused before it is made.
func TestHostAddresses(t *testing.T) {
	t.Parallel()
	interfaces, err := net.InterfaceAddrs()
	if err != nil || len(interfaces) == 0 {
		t.Fatal(interfaces, err)
	}
	for _, one := range interfaces {
		addr := netip.MustParsePrefix(one.String()).Addr()
		if !(Reach{}).ofHost(meant(addr)) {
			t.Errorf("%s is not this host's", addr)
		}
		var refused *RefusedAddress
		dialer := net.Dialer{ControlContext: Reach{Private: true}.Control}
		conn, err := dialer.DialContext(t.Context(), "tcp", netip.AddrPortFrom(addr, 9).String())
		if !errors.As(err, &refused) && !addr.IsLinkLocalUnicast() {
			t.Errorf("%s gave %v, %v", addr, conn, err)
		}
	}
	if (Reach{}).ofHost(netip.MustParseAddr("203.0.113.77")) {
		t.Error("an address of nobody is this host's")
	}
}

// TestRefusalsTellNoAddress: a refusal names the address to whoever wrote it; of a name it
// says neither what it leads to nor what kind of address that is.
func TestRefusalsTellNoAddress(t *testing.T) {
	t.Parallel()
	var told []string
	for _, to := range []string{"127.0.0.1", "10.0.0.1", "10.200.0.9", "169.254.169.254", "::1"} {
		addr := netip.MustParseAddr(to)
		var refused *RefusedAddress
		if err := (Reach{LocalNetworks: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}}).Check(addr); !errors.As(err, &refused) {
			t.Fatal(to, err)
		}
		if said := refused.Tell(t.Context(), to); said != refused.Error() || !strings.Contains(said, to) {
			t.Errorf("of %s: %s", to, said)
		}
		told = append(told, refused.Tell(t.Context(), "db.intern"))
	}
	if all := slices.Compact(told); len(all) != 1 || !strings.HasPrefix(all[0], "db.intern ") || !strings.Contains(all[0], "LOOM_PROVIDER_NETWORKS") {
		t.Errorf("%q", all)
	}
}

// TestReachOfHosts: names are judged by all that they resolve to.
func TestReachOfHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"127.0.0.1": false, "::1": false, "localhost": false, "LOCALHOST.": false, "a.localhost": false, "8.8.8.8": true, "nobody.invalid": true} {
		if err := (Reach{Private: true}).CheckHost(t.Context(), host); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := (Reach{}).CheckHost(ended, "nobody.invalid"); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that ended gave %v", err)
	}
}

func BenchmarkReach(b *testing.B) {
	reach := Reach{Private: true, Networks: []ReachNetwork{{netip.MustParsePrefix("10.9.0.0/16"), true}, {netip.MustParsePrefix("127.0.0.0/8"), false}}}
	addr := netip.MustParseAddr("52.95.110.1")
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			reach.May(addr)
		}
	})
	b.Run("key", func(b *testing.B) {
		for b.Loop() {
			_ = reach.Key()
		}
	})
}
