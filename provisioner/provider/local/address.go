package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"loom/app/loom"
)

// chooseRange looks for a network of 16 bits that nothing on this host uses. The
// hash decides where to begin, so that instances that are stopped at the
// moment, and so cannot be seen, keep theirs.
func chooseRange(hash string) (string, error) {
	taken, err := takenNetworks()
	if err != nil {
		return "", err
	}
	// The lower half of 10.0.0.0/8 is where offices, clusters and clouds live.
	const first, count = 128, 126
	var start uint32
	for _, c := range hash {
		start = start*16 + uint32(strings.IndexRune("0123456789abcdef", c))
	}
	for i := range uint32(count) {
		_, candidate, _ := net.ParseCIDR(fmt.Sprintf("10.%d.0.0/16", first+(start+i)%count))
		if !overlapsAny(candidate, taken) {
			return candidate.String(), nil
		}
	}
	return "", loom.NewError(loom.Unavailable, "Every network from 10.%d.0.0/16 to 10.%d.0.0/16 is in use on this host, so local machines have no addresses. Free one of them.", first, first+count-1)
}

// takenNetworks lists what the host routes to or talks to: machines must not
// hide any of it.
func takenNetworks() ([]*net.IPNet, error) {
	var taken []*net.IPNet
	routes, err := whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: 0}, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst != nil {
			if ones, _ := r.Dst.Mask.Size(); ones > 0 {
				taken = append(taken, r.Dst)
			}
		}
	}
	addresses, err := whole(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range addresses {
		taken = append(taken, a.IPNet)
	}
	for _, line := range strings.Split(hostResolvers(), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			if ip := net.ParseIP(f[1]).To4(); ip != nil {
				taken = append(taken, &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)})
			}
		}
	}
	return taken, nil
}

func overlapsAny(n *net.IPNet, others []*net.IPNet) bool {
	for _, other := range others {
		if n.Contains(other.IP) || other.Contains(n.IP) {
			return true
		}
	}
	return false
}

// Networks returns the range of this instance, once it has chosen one.
func (l *Local) Networks() []netip.Prefix {
	in, err := l.readInstance()
	if err != nil {
		return nil
	}
	if whole, err := netip.ParsePrefix(in.Range); err == nil {
		return []netip.Prefix{whole}
	}
	return nil
}

// Address returns the address of the machine of a task as this host recorded it.
func (l *Local) Address(spec *loom.TaskSpec) netip.Addr {
	if spec.IdempotencyKey == "" {
		return netip.Addr{}
	}
	s, err := l.find(text(spec.Results["providerid"]), spec.IdempotencyKey)
	if err != nil || s == nil {
		return netip.Addr{}
	}
	address, _ := netip.ParseAddr(s.Address)
	return address
}

// claimAddress takes a free address of the network for a machine: a file per
// address, made so that only one can win. The search begins anywhere, so that
// the address of a deleted machine does not come back at once.
func (l *Local) claimAddress(n tenantNet, id string) (string, error) {
	if err := os.MkdirAll(filepath.Join(l.dataDir, "addresses"), 0o700); err != nil {
		return "", err
	}
	const usable = 1<<(32-tenantBits) - 3 // without network, gateway and broadcast
	l.claims.Lock()
	defer l.claims.Unlock()
	if most := l.ceilings.machines; most > 0 {
		have, err := l.addressesIn(n)
		if err != nil {
			return "", err
		}
		if int64(have) >= most {
			return "", loom.NewError(loom.Exhausted, "The tenant has %d local machines and may have %d (%s). Delete clusters, or use another provider.", have, most, tenantMaxOption)
		}
	}
	start := rand.Uint32N(usable)
	for i := range uint32(usable) {
		address := addressAt(n.subnet.IP, 2+(start+i)%usable).String()
		f, err := os.OpenFile(l.addressFile(address), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(id)
		return address, errors.Join(err, f.Close())
	}
	return "", loom.NewError(loom.Exhausted, "The network of this tenant's local machines is full (%d machines). Delete clusters, or use another provider.", usable)
}

// addressesIn counts the addresses of a network that machines have.
func (l *Local) addressesIn(n tenantNet) (int, error) {
	entries, err := os.ReadDir(filepath.Join(l.dataDir, "addresses"))
	if err != nil && !isGone(err) {
		return 0, fmt.Errorf("count addresses: %w", err)
	}
	count := 0
	for _, e := range entries {
		if ip := parseIP(e.Name()); ip != nil && n.subnet.Contains(ip) {
			count++
		}
	}
	return count, nil
}

func parseIP(text string) net.IP { return net.ParseIP(text).To4() }

// addressAt returns the address that lies an offset above another.
func addressAt(base net.IP, offset uint32) net.IP {
	ip := make(net.IP, 4)
	binary.BigEndian.PutUint32(ip, binary.BigEndian.Uint32(base.To4())+offset)
	return ip
}

// whole takes a list from the kernel again when it changed while it was read,
// which is common on a host where machines come and go.
func whole[T any](list func() ([]T, error)) ([]T, error) {
	for tries := 0; ; tries++ {
		all, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) || tries == 50 {
			return all, err
		}
	}
}
