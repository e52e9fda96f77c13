package local

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"loom/app/loom"
)

const (
	// tenantBits is the prefix length of a tenant's network: 1,021 machines,
	// about what one bridge takes (1,023 ports).
	tenantBits = 22
	// maxTenants is how many such networks an instance's range of 16 bits holds.
	maxTenants = 64
	// rangeLock keeps instances that start together from choosing one range.
	rangeLock = "/run/lock/loom-network.lock"
)

// instance is what an instance of Loom chose for itself on this host.
type instance struct {
	// Range is a network of 16 bits in 10.0.0.0/8, free when it was chosen.
	Range string `json:"range"`
	// Tenants returns each tenant's place in the range, 0 to 63.
	Tenants map[loom.TenantID]int `json:"tenants"`
	// IDs is the first id of the installation's block on the host.
	IDs int `json:"ids,omitempty"`
}

// tenantNet is a tenant's network: its bridge and addresses.
type tenantNet struct {
	index  int
	bridge string
	subnet *net.IPNet
	// first is the first id of the tenant's range.
	first int
}

// gateway is the host's address on the bridge, the first of the network.
func (n tenantNet) gateway() net.IP { return addressAt(n.subnet.IP, 1) }

func (l *Local) readInstance() (instance, error) {
	in := instance{Tenants: map[loom.TenantID]int{}}
	data, err := os.ReadFile(l.instanceFile())
	if isGone(err) {
		return in, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	if err != nil {
		return in, fmt.Errorf("read %s: %w", l.instanceFile(), err)
	}
	return in, nil
}

// net returns the network of the tenant at a place.
func (in instance) net(l *Local, index int) (tenantNet, error) {
	_, whole, err := net.ParseCIDR(in.Range)
	if err != nil {
		return tenantNet{}, fmt.Errorf("range of %s: %w", l.instanceFile(), err)
	}
	base := addressAt(whole.IP.To4(), uint32(index)<<(32-tenantBits))
	return tenantNet{index: index, bridge: l.bridgeName(index), subnet: &net.IPNet{IP: base, Mask: net.CIDRMask(tenantBits, 32)}, first: in.firstID(index)}, nil
}

// ensureTenant returns the tenant's network, in working order: range chosen,
// bridge up, packets filtered.
func (l *Local) ensureTenant(ctx context.Context, tenant loom.TenantID) (tenantNet, error) {
	unlock, err := l.lockInstance(ctx)
	if err != nil {
		return tenantNet{}, err
	}
	defer unlock()
	in, err := l.readInstance()
	if err != nil {
		return tenantNet{}, err
	}
	index, known := in.Tenants[tenant]
	if known && in.IDs != 0 {
		n, err := in.net(l, index)
		if err != nil {
			return tenantNet{}, err
		}
		if _, err := netlink.LinkByName(n.bridge); err == nil && l.loaded && l.filtered() {
			return n, nil
		}
	}
	if in.Range == "" {
		held, err := lockFile(ctx, rangeLock) // until the bridge shows the choice
		if err != nil {
			return tenantNet{}, err
		}
		defer held.Close()
		if in.Range, err = chooseRange(l.hash); err != nil {
			return tenantNet{}, err
		}
	}
	changed := !known || in.IDs == 0
	if in.IDs == 0 {
		if in.IDs, err = l.reservations.reserve(ctx, l.dataDir, l.hash); err != nil {
			return tenantNet{}, err
		}
	}
	if !known {
		if index, err = l.placeFor(in); err != nil {
			return tenantNet{}, err
		}
		for other, taken := range in.Tenants {
			if taken == index { // a tenant without machines gives its place away
				delete(in.Tenants, other)
			}
		}
		in.Tenants[tenant] = index
	}
	if changed {
		if err := writeJSON(l.instanceFile(), in); err != nil {
			return tenantNet{}, err
		}
	}
	n, err := in.net(l, index)
	if err != nil {
		return tenantNet{}, err
	}
	if err := l.bridge(n); err != nil {
		return tenantNet{}, err
	}
	return n, l.filter(in)
}

// placeFor finds the lowest free place for a tenant, else that of a tenant that
// has no machine.
func (l *Local) placeFor(in instance) (int, error) {
	used := map[int]bool{}
	for _, index := range in.Tenants {
		used[index] = true
	}
	for index := range maxTenants {
		if !used[index] {
			return index, nil
		}
	}
	states, _, err := l.readStates()
	if err != nil {
		return 0, err
	}
	busy := map[loom.TenantID]bool{}
	for _, s := range states {
		busy[s.Tenant] = true
	}
	for tenant, index := range in.Tenants {
		if !busy[tenant] {
			return index, nil
		}
	}
	return 0, loom.NewError(loom.Exhausted, "This host has local networks for %d tenants and all have machines. Delete the clusters of one tenant, or use another provider.", maxTenants)
}

// bridge makes sure that a tenant's bridge is there and up.
func (l *Local) bridge(n tenantNet) error {
	if _, err := netlink.LinkByName(n.bridge); err == nil {
		return nil
	}
	taken, err := takenNetworks()
	if err != nil {
		return err
	}
	if overlapsAny(n.subnet, taken) {
		return loom.NewError(loom.Unavailable, "The network %s of this installation's local machines is now used by something else on this host. Free it, or remove the local machines and let Loom choose again.", n.subnet)
	}
	snooping := false // machines do not route multicast, and snooping costs memory per port
	br := &netlink.Bridge{
		LinkAttrs: netlink.LinkAttrs{Name: n.bridge, TxQLen: -1, MTU: uplinkMTU(),
			// Without an address of its own the bridge takes the lowest of its ports
			// and changes it as they come and go; hosts then talk to the old one.
			HardwareAddr: l.hardwareAddr(n.gateway())},
		MulticastSnooping: &snooping,
	}
	if err := netlink.LinkAdd(br); err != nil {
		return fmt.Errorf("make bridge %s: %w", n.bridge, err)
	}
	disableIPv6(n.bridge)
	answerForOneself(n.bridge)
	ones, _ := n.subnet.Mask.Size()
	address, err := netlink.ParseAddr(fmt.Sprintf("%s/%d", n.gateway(), ones))
	if err == nil {
		err = errors.Join(netlink.AddrAdd(br, address), netlink.LinkSetUp(br))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("set up bridge %s: %w", n.bridge, err), netlink.LinkDel(br))
	}
	return nil
}

// plug connects a machine, known by its first process, to its tenant's bridge.
func (l *Local) plug(n tenantNet, address string, pid int) error {
	if err := l.removeCable(address); err != nil { // of an attempt that was cut short
		return err
	}
	br, err := netlink.LinkByName(n.bridge)
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", n.bridge, err)
	}
	mac := l.hardwareAddr(parseIP(address))
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: l.cableName(address), TxQLen: 1000, MTU: br.Attrs().MTU, MasterIndex: br.Attrs().Index},
		PeerName:  "eth0", PeerNamespace: netlink.NsPid(pid), PeerMTU: uint32(br.Attrs().MTU),
		// Follows from the address, so that neighbours of a machine that is made
		// anew under an old address need not forget anything.
		PeerHardwareAddr: mac,
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("make cable %s: %w", veth.Name, err)
	}
	disableIPv6(veth.Name)
	link, err := netlink.LinkByName(veth.Name)
	if err == nil {
		err = errors.Join(l.fasten(link, br, address), netlink.LinkSetUp(link))
	}
	if err != nil {
		return fmt.Errorf("set up cable %s: %w", veth.Name, err)
	}
	return nil
}

// fasten binds the hardware address of a machine to its cable, and its address to both on
// the host: the bridge learns nothing and takes no frames from elsewhere, and the host
// believes no ARP.
func (l *Local) fasten(cable, bridge netlink.Link, address string) error {
	const locked = 39 // IFLA_BRPORT_LOCKED, since Linux 5.16; older ones ignore it
	ip := parseIP(address)
	mac := l.hardwareAddr(ip)
	entry := &netlink.Neigh{LinkIndex: cable.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER, HardwareAddr: mac}
	if err := netlink.NeighSet(entry); err != nil {
		return fmt.Errorf("bind hardware address: %w", err)
	}
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_BRIDGE)
	msg.Index = int32(cable.Attrs().Index)
	req.AddData(msg)
	port := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
	port.AddRtAttr(nl.IFLA_BRPORT_LEARNING, []byte{0})
	port.AddRtAttr(locked, []byte{1})
	req.AddData(port)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("lock port: %w", err)
	}
	if err := netlink.NeighSet(&netlink.Neigh{LinkIndex: bridge.Attrs().Index, State: netlink.NUD_PERMANENT, IP: ip, HardwareAddr: mac}); err != nil {
		return fmt.Errorf("bind address: %w", err)
	}
	return nil
}

// bridgeOf is the name of the bridge of a machine's tenant.
func (l *Local) bridgeOf(ip net.IP) string { return l.bridgeName(int(ip[2]) >> (tenantBits - 16)) }

// reconnect sees to it that a running machine has its bridge and the rules that
// keep it apart; someone may have taken them away. It reports false when the
// machine's cable is gone, which cannot be mended from outside.
func (l *Local) reconnect(ctx context.Context, s *state) (bool, error) {
	home, err := l.ensureTenant(ctx, s.Tenant)
	if err != nil {
		return false, err
	}
	cable, err := netlink.LinkByName(l.cableName(s.Address))
	if err != nil {
		return false, nil
	}
	br, err := netlink.LinkByName(home.bridge)
	if err == nil && cable.Attrs().MasterIndex != br.Attrs().Index {
		err = netlink.LinkSetMaster(cable, br)
	}
	if err == nil { // a release before this one did not, and another bridge forgets it
		err = l.fasten(cable, br, s.Address)
	}
	return err == nil, err
}

// unplug removes a machine's cable and what the host knows of its address; none is fine.
func (l *Local) unplug(address string) error {
	err := l.removeCable(address)
	if ip := parseIP(address); ip != nil {
		if br, lookup := netlink.LinkByName(l.bridgeOf(ip)); lookup == nil {
			gone := netlink.NeighDel(&netlink.Neigh{LinkIndex: br.Attrs().Index, IP: ip})
			if gone != nil && !isGone(gone) && !errors.Is(gone, unix.ENODEV) {
				err = errors.Join(err, fmt.Errorf("forget address %s: %w", address, gone))
			}
		}
	}
	return err
}

func (l *Local) removeCable(address string) error {
	link, err := netlink.LinkByName(l.cableName(address))
	if err == nil {
		err = netlink.LinkDel(link)
	}
	var none netlink.LinkNotFoundError
	if err != nil && !errors.As(err, &none) && !strings.Contains(err.Error(), "no such device") {
		return fmt.Errorf("remove cable %s: %w", l.cableName(address), err)
	}
	return nil
}

// cableName has the last 16 bits of the address: unique within the instance.
func (l *Local) cableName(address string) string {
	ip := parseIP(address)
	if ip == nil {
		return l.linkPattern() + "v"
	}
	return fmt.Sprintf("%sv%02x%02x", l.linkPattern(), ip[2], ip[3])
}

// links lists this instance's interfaces; deleting a bridge's cables first
// makes no difference, so they come in any order.
func (l *Local) links() ([]netlink.Link, error) {
	all, err := whole(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var own []netlink.Link
	for _, link := range all {
		if strings.HasPrefix(link.Attrs().Name, l.linkPattern()) {
			own = append(own, link)
		}
	}
	return own, nil
}

// hardwareAddr derives a locally administered MAC address.
func (l *Local) hardwareAddr(ip net.IP) net.HardwareAddr {
	sum := sha256.Sum256([]byte(l.dataDir))
	return net.HardwareAddr{0x02, sum[0], sum[1], sum[2], ip.To4()[2], ip.To4()[3]}
}

// uplinkMTU is the packet size of the host's own way out, which machines with
// internet share.
func uplinkMTU() int {
	routes, err := whole(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: nil}, netlink.RT_FILTER_DST)
	})
	if err == nil {
		for _, r := range routes {
			if link, err := netlink.LinkByIndex(r.LinkIndex); err == nil && link.Attrs().MTU > 0 {
				return min(1500, link.Attrs().MTU)
			}
		}
	}
	return 1500
}

// answerForOneself keeps the host from telling, on a bridge, which other addresses it has.
func answerForOneself(bridge string) {
	_ = os.WriteFile("/proc/sys/net/ipv4/conf/"+bridge+"/arp_ignore", []byte("1"), 0)
}

// disableIPv6 keeps an interface of the host out of IPv6; the kernel may have none.
func disableIPv6(name string) {
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
}
