package loom

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Reach says which addresses Loom may connect to on behalf of a tenant: APIs of
// clouds, machines, jump hosts, hooks. The zero value reaches public addresses only.
// What counts is the address of the connection (Control), never that of a name
// looked up before: a name can resolve to another address each time.
type Reach struct {
	// Private adds private networks: the tenant's switch.
	Private bool
	// Networks are those that the operator named; the narrowest one that holds an
	// address decides, before all else but Machine.
	Networks []ReachNetwork
	// LocalNetworks are the networks of machines that Loom itself runs on this host, which
	// nobody reaches but by Machine, the machine that a task is about.
	LocalNetworks []netip.Prefix
	Machine       netip.Addr
	// host gives the addresses of this host, which nobody reaches unless Networks say so:
	// services that listen for this host's own sake answer there too. nil: those of
	// its interfaces.
	host func() ([]netip.Addr, error)
}

// ReachNetwork adds a network, or takes it away.
type ReachNetwork struct {
	Network netip.Prefix
	Refuse  bool
}

// ParseReach reads networks separated by commas; “!” before one takes it away. A
// single address is a network too.
func ParseReach(text string) ([]ReachNetwork, error) {
	var all []ReachNetwork
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		plain, refuse := strings.CutPrefix(part, "!")
		plain = strings.TrimSpace(plain)
		network, err := netip.ParsePrefix(plain)
		if addr, bad := netip.ParseAddr(plain); bad == nil && addr.Zone() == "" {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil || network.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is no network; give networks such as 10.1.0.0/16, with “!” before those to take away", part)
		}
		all = append(all, ReachNetwork{network.Masked(), refuse})
	}
	return all, nil
}

// Named makes networks that are added.
func Named(networks ...netip.Prefix) []ReachNetwork {
	all := make([]ReachNetwork, len(networks))
	for i, n := range networks {
		all[i].Network = n
	}
	return all
}

// Anywhere reaches every address: for what the operator names on a command line,
// and for tests, whose machines are on this host.
func Anywhere() Reach {
	return Reach{Networks: Named(netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))}
}

// privateNetworks are those that the switch of a tenant opens: networks of one's own
// besides those that package netip knows (RFC 1918, RFC 4193), shared ones of
// providers, and those of laboratories.
var privateNetworks = prefixes("100.64.0.0/10 198.18.0.0/15 fec0::/10")

// metadata are addresses at which clouds tell their machines secrets, beyond those of
// link-local networks: AWS, Google, Alibaba, Azure.
var metadata = prefixes("fd00:ec2::/32 fd20:ce::254/128 100.100.100.200/32 168.63.129.16/32")

// special are networks that no public service is in (IANA's registries of special
// addresses), beyond what package netip knows.
var special = prefixes("0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 " +
	"::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16")

// IPv4Ranges gives networks of IPv4 for the packet filter of machines: those that nobody
// reaches, and those besides that are not public. The latter are the private ones and, unlike for
// Reach, those for documentation: some installations use them for themselves.
func IPv4Ranges() (never, private []netip.Prefix) {
	never = prefixes("0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/3")
	private = prefixes("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16")
	ipv4 := func(all []netip.Prefix) []netip.Prefix {
		return slices.DeleteFunc(slices.Clone(all), func(p netip.Prefix) bool { return !p.Addr().Is4() })
	}
	others := slices.DeleteFunc(ipv4(special), func(p netip.Prefix) bool { return within(p.Addr(), never) })
	return append(never, ipv4(metadata)...), slices.Concat(private, ipv4(privateNetworks), others)
}

// nat64 is the network whose addresses stand for the IPv4 address at their end.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(text string) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range strings.Fields(text) {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

func within(addr netip.Addr, networks []netip.Prefix) bool {
	for _, network := range networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// meant is the address that is meant by one: without zone, and IPv4 where IPv6 only
// carries it.
func meant(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}

// May reports whether an address may be connected to.
func (r Reach) May(addr netip.Addr) bool { return r.Check(addr) == nil }

// Check gives a *RefusedAddress for an address that must not be connected to.
func (r Reach) Check(addr netip.Addr) error {
	to := meant(addr)
	if r.Machine.IsValid() && to == meant(r.Machine) {
		return nil
	}
	refused := &RefusedAddress{Address: addr.String()}
	narrowest := -1
	may := false
	for _, n := range r.Networks {
		if !n.Network.Contains(to) || n.Network.Bits() < narrowest || n.Network.Bits() == narrowest && !n.Refuse {
			continue
		}
		narrowest, may = n.Network.Bits(), !n.Refuse
	}
	switch {
	case may:
		return nil
	case narrowest >= 0:
		refused.why = takenAway
	case within(to, r.LocalNetworks):
		refused.why = ofAnother
	case !to.IsGlobalUnicast() || within(to, metadata) || within(to, special):
		refused.why = never
	case r.ofHost(to):
		refused.why = ofHost
	case !to.IsPrivate() && !within(to, privateNetworks), r.Private:
		return nil
	default:
		refused.why = private
	}
	return refused
}

// ofHost reports whether an address is this host's. Where nobody can say, it is.
func (r Reach) ofHost(addr netip.Addr) bool {
	read := r.host
	if read == nil {
		read = hostAddresses
	}
	all, err := read()
	return err != nil || slices.Contains(all, addr)
}

// hostAddresses reads those of all interfaces. They change while Loom runs, so they are
// kept for some seconds only; where they cannot be read again, the last ones count.
var hostAddresses = func() func() ([]netip.Addr, error) {
	var mu sync.Mutex
	var kept []netip.Addr
	var since time.Time
	return func() ([]netip.Addr, error) {
		mu.Lock()
		defer mu.Unlock()
		if kept != nil && time.Since(since) < 5*time.Second {
			return kept, nil
		}
		read, err := net.InterfaceAddrs()
		if err != nil {
			slog.Warn("the addresses of this host cannot be read", "error", err)
		}
		if err != nil && kept == nil {
			return nil, err
		}
		since = time.Now()
		if err != nil {
			return kept, nil //nolint:nilerr // as said
		}
		all := make([]netip.Addr, 0, len(read))
		for _, a := range read {
			if network, ok := a.(*net.IPNet); ok {
				if addr, ok := netip.AddrFromSlice(network.IP); ok {
					all = append(all, meant(addr))
				}
			}
		}
		kept = all
		return all, nil
	}
}()

// Control is for net.Dialer.ControlContext.
func (r Reach) Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &RefusedAddress{Address: address, why: never}
	}
	return r.Check(to.Addr())
}

// CheckHost checks a host that somebody else is going to connect to, such as a proxy:
// an address, or all that a name resolves to here. A name that nobody here knows
// passes. Errors: *RefusedAddress, or the cause with which ctx ended.
func (r Reach) CheckHost(ctx context.Context, host string) error {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return r.Check(addr)
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return r.Check(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return nil //nolint:nilerr // as said
	}
	for _, addr := range found {
		if err := r.Check(addr); err != nil {
			return err
		}
	}
	return nil
}

// Key is the same for those that reach the same.
func (r Reach) Key() string { return fmt.Sprint(r.Private, r.Networks, r.LocalNetworks, r.Machine) }

// Why an address is refused.
const (
	never     = "never"
	private   = "private"
	takenAway = "taken away"
	ofAnother = "of another"
	ofHost    = "of the host"
)

// RefusedAddress says that Loom does not connect to an address, and what would help.
type RefusedAddress struct{ Address, why string }

// Error is a sentence for people, without its end.
func (e *RefusedAddress) Error() string {
	switch e.why {
	case private:
		return fmt.Sprintf("%s is in a private network, which this tenant may not reach; the superadmin can allow private networks for this tenant, or LOOM_PROVIDER_NETWORKS can name it", e.Address)
	case takenAway:
		return fmt.Sprintf("%s is in a network that LOOM_PROVIDER_NETWORKS takes away; ask whoever runs Loom", e.Address)
	case ofAnother:
		return fmt.Sprintf("%s is in the network of the local machines of this host and not the machine of this task; LOOM_PROVIDER_NETWORKS can name it", e.Address)
	case ofHost:
		return fmt.Sprintf("%s is an address of the host that Loom runs on; LOOM_PROVIDER_NETWORKS can name it", e.Address)
	}
	return fmt.Sprintf("Loom connects to no loopback, link-local, metadata or other special address, and %s is one; LOOM_PROVIDER_NETWORKS can name it", e.Address)
}

// Tell is a sentence like Error for whoever gave host. An address that he wrote is named;
// what a name leads to is not his to know, and goes to the log of the process.
func (e *RefusedAddress) Tell(ctx context.Context, host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return e.Error()
	}
	slog.WarnContext(ctx, "a name leads to an address that is not connected to", "host", host, "address", e.Address, "why", e.Error())
	return fmt.Sprintf("%s leads to an address that this tenant may not reach; whoever runs Loom finds it in the log of the process, and can name it in LOOM_PROVIDER_NETWORKS", host)
}
