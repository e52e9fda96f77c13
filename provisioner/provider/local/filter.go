package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"loom/app/loom"
)

// filterScript is the instance's whole packet filter table, for nft -f. The
// first two lines make it replace what is there, in one transaction.
//
// From machines the host accepts replies only. Machines of one tenant reach
// each other and nobody else; those with internet reach public addresses and, unless they
// are public only, private networks. Nobody reaches metadata and the like, unless the
// operator named it; the host's own resolvers answer to all that have internet.
// A packet must come from an address of its bridge's network. Towards the host
// packets vanish; on their way elsewhere they are refused, so that a machine
// without internet learns at once that a name or a registry is out of reach.
func (l *Local) filterScript(nets []tenantNet, internet, publicOnly []string) string {
	var b strings.Builder
	table, ours := "inet "+l.tableName(), fmt.Sprintf("%q", l.linkPattern()+"b*")
	fmt.Fprintf(&b, "table %s\ndelete table %s\ntable %s {\n", table, table, table)
	set := func(name, flags string, elements []string) {
		fmt.Fprintf(&b, "\tset %s {\n\t\ttype ipv4_addr\n%s", name, flags)
		if len(elements) > 0 {
			fmt.Fprintf(&b, "\t\telements = { %s }\n", strings.Join(elements, ", "))
		}
		b.WriteString("\t}\n")
	}
	const intervals = "\t\tflags interval\n\t\tauto-merge\n"
	never, private := loom.IPv4Ranges()
	set("internet", "", internet)
	set("public_only", "", publicOnly)
	set("resolvers", "", resolversOf(l.resolvers()))
	set("networks", intervals, texts(l.networks))
	set("never", intervals, texts(never))
	set("private", intervals, texts(private))
	// A TCP client ignores ICMP for a second when the answer comes at once.
	b.WriteString("\tchain refuse {\n\t\tmeta l4proto tcp reject with tcp reset\n\t\treject with icmpx admin-prohibited\n\t}\n")
	// Elements come with connections of an address and go with them; there is room for all
	// machines.
	b.WriteString("\tset flows {\n\t\ttype ipv4_addr\n\t\tsize 65535\n\t\tflags dynamic\n\t}\n\tset pace {\n\t\ttype ipv4_addr\n\t\tsize 65535\n\t\tflags dynamic,timeout\n\t\ttimeout 1m\n\t}\n")
	share := connections()
	fmt.Fprintf(&b, "\tchain share {\n\t\tupdate @pace { ip saddr limit rate over %d/second burst %d packets } goto refuse\n", max(1, share/32), share)
	if l.canCount() == nil {
		fmt.Fprintf(&b, "\t\tadd @flows { ip saddr ct count over %d } goto refuse\n", share)
	}
	b.WriteString("\t}\n")
	b.WriteString("\tchain spoof {\n\t\ttype filter hook prerouting priority raw; policy accept;\n")
	fmt.Fprintf(&b, "\t\tiifname %s meta nfproto ipv6 drop\n", ours)
	for _, n := range nets {
		fmt.Fprintf(&b, "\t\tiifname %q ip saddr != %s drop\n", n.bridge, n.subnet)
	}
	b.WriteString("\t}\n")
	b.WriteString("\tchain to_host {\n\t\ttype filter hook input priority filter; policy accept;\n")
	// Not what is only related: errors that a machine makes up about connections of the host
	// change its routes, and none of a machine's own is missed.
	fmt.Fprintf(&b, "\t\tiifname %s ct state established accept\n\t\tiifname %s drop\n\t}\n", ours, ours)
	b.WriteString("\tchain through {\n\t\ttype filter hook forward priority filter; policy accept;\n")
	for _, n := range nets {
		// Where the host filters bridged packets too, neighbours come by here.
		fmt.Fprintf(&b, "\t\tiifname %q oifname %q accept\n", n.bridge, n.bridge)
		// Errors about connections of others, which the host would send on in their name.
		fmt.Fprintf(&b, "\t\tiifname %q ct state related ct original ip saddr != %s drop\n", n.bridge, n.subnet)
	}
	fmt.Fprintf(&b, "\t\tiifname %s oifname %s goto refuse\n", ours, ours)
	fmt.Fprintf(&b, "\t\toifname %s ct state established,related accept\n\t\toifname %s drop\n", ours, ours)
	for _, rule := range []string{
		"ip saddr @internet ct state new jump share",
		"ip saddr @internet ip daddr @resolvers udp dport 53 accept", "ip saddr @internet ip daddr @resolvers tcp dport 53 accept",
		"ip saddr @internet ip daddr @networks accept",
		"ip daddr @never goto refuse", "ip saddr @public_only ip daddr @private goto refuse", "ip saddr @internet accept", "goto refuse",
	} {
		fmt.Fprintf(&b, "\t\tiifname %s %s\n", ours, rule)
	}
	b.WriteString("\t}\n")
	b.WriteString("\tchain out {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n")
	fmt.Fprintf(&b, "\t\tip saddr @internet oifname != %s masquerade\n\t}\n}\n", ours)
	return b.String()
}

// connections is how many a machine with internet may have at once: a part of what the
// host keeps track of, for itself and all machines. Closed ones stay on the host's list for
// two minutes and do not count, so new ones have a pace besides.
func connections() int {
	const parts, most, least = 64, 4096, 256
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	if err != nil { // not loaded before the first rule that needs it
		return most / 4
	}
	all, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || all == 0 { // no limit
		return most
	}
	return max(least, min(most, all/parts))
}

// cableScript is the table of what comes out of cables, before the bridge has it: IPv4
// and ARP in the name of the machine only. The hardware address is the machine's, as the
// bridge's port is locked, and its last two bytes are those of the address; each is
// compared by looking for the pair. So the table knows no machine and stays as it is when
// machines come and go.
func (l *Local) cableScript(nets []tenantNet) string {
	var b strings.Builder
	table := "bridge " + l.tableName()
	fmt.Fprintf(&b, "table %s\ndelete table %s\ntable %s {\n\tset pairs {\n\t\ttype ether_addr . ipv4_addr\n\t\telements = { ", table, table, table)
	for i := range 256 {
		fmt.Fprintf(&b, "00:00:00:00:00:%02x . 0.0.0.%d, ", i, i)
		if i > 0 {
			fmt.Fprintf(&b, "00:00:00:00:%02x:00 . 0.0.%d.0, ", i, i)
		}
	}
	fmt.Fprintf(&b, "}\n\t}\n\tchain cables {\n\t\ttype filter hook prerouting priority -200; policy accept;\n\t\tiifname != %q accept\n\t\tether type != { ip, arp } drop\n", l.linkPattern()+"v*")
	for _, field := range []string{"ip saddr", "arp saddr ip"} {
		kind, _, _ := strings.Cut(field, " ")
		if len(nets) > 0 {
			fmt.Fprintf(&b, "\t\tether type %s %s & 255.255.0.0 != %s drop\n", kind, field, nets[0].subnet.IP.Mask(net.CIDRMask(16, 32)))
		}
		fmt.Fprintf(&b, "\t\tether type %[1]s ether saddr & 00:00:00:00:00:ff . %[2]s & 0.0.0.255 != @pairs drop\n\t\tether type %[1]s ether saddr & 00:00:00:00:ff:00 . %[2]s & 0.0.255.0 != @pairs drop\n", kind, field)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// canFilterCables reports why the kernel cannot filter what bridges take, nil when it can.
func (l *Local) canFilterCables() error { return l.cables.of(l, "bridge", "") }

// canCount reports why the kernel cannot count connections, nil when it can.
func (l *Local) canCount() error {
	return l.counts.of(l, "inet", "set s {\n\t\ttype ipv4_addr\n\t\tsize 16\n\t\tflags dynamic\n\t}\n\tchain share {\n\t\tadd @s { ip saddr ct count over 1 } drop\n\t}\n")
}

// ability is something that the kernel can or cannot do, tried once.
type ability struct {
	once sync.Once
	err  error
}

func (a *ability) of(l *Local, family, rules string) error {
	a.once.Do(func() {
		table := "table " + family + " " + l.tableName() + "_try"
		a.err = nft(table + " {\n\tchain c {\n\t\ttype filter hook prerouting priority -200;\n\t}\n\t" + rules + "}\ndelete " + table + "\n")
	})
	return a.err
}

// filter loads the table for all tenants of the instance and the machines on
// record; the caller holds the instance's lock.
func (l *Local) filter(in instance) error {
	var nets []tenantNet
	for _, index := range in.Tenants {
		n, err := in.net(l, index)
		if err != nil {
			return err
		}
		nets = append(nets, n)
	}
	for _, n := range nets {
		answerForOneself(n.bridge) // that of an earlier release may not
	}
	slices.SortFunc(nets, func(a, b tenantNet) int { return a.index - b.index })
	states, _, err := l.readStates()
	if err != nil {
		return err
	}
	var internet, publicOnly []string
	for _, s := range states {
		if s.Internet && !s.Deleting {
			internet = append(internet, s.Address)
			if s.PublicOnly {
				publicOnly = append(publicOnly, s.Address)
			}
		}
	}
	script := l.filterScript(nets, internet, publicOnly)
	if l.canFilterCables() == nil {
		script += l.cableScript(nets)
	}
	if err := nft(script); err != nil {
		return err
	}
	l.loaded = true
	return nil
}

// resolversOf returns the IPv4 addresses of a resolv.conf.
func resolversOf(conf string) (addresses []string) {
	for line := range strings.Lines(conf) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(words[1]); err == nil && a.Is4() && !slices.Contains(addresses, words[1]) {
			addresses = append(addresses, words[1])
		}
	}
	return addresses
}

func texts(networks []netip.Prefix) []string {
	all := make([]string, len(networks))
	for i, n := range networks {
		all[i] = n.Masked().String()
	}
	return all
}

// filtered reports whether the tables are loaded. Restarting a host's firewall
// often throws away everybody's tables, so this is asked before each boot; it
// takes some 30 µs.
func (l *Local) filtered() bool {
	return l.hasTable(unix.NFPROTO_INET) && (l.canFilterCables() != nil || l.hasTable(unix.NFPROTO_BRIDGE))
}

func (l *Local) hasTable(family byte) bool {
	const getTable = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETTABLE
	req := nl.NewNetlinkRequest(getTable, 0)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: unix.NFNETLINK_V0})
	req.AddData(nl.NewRtAttr(unix.NFTA_TABLE_NAME, nl.ZeroTerminated(l.tableName())))
	_, err := req.Execute(unix.NETLINK_NETFILTER, 0)
	return err == nil
}

// allowInternet lets a machine's packets out.
func (l *Local) allowInternet(ctx context.Context, s *state) error {
	const forward = "/proc/sys/net/ipv4/ip_forward"
	if on, err := os.ReadFile(forward); err != nil || strings.TrimSpace(string(on)) != "1" {
		if err := os.WriteFile(forward, []byte("1"), 0); err != nil {
			return fmt.Errorf("turn on forwarding of packets: %w", err)
		}
	}
	if s.PublicOnly { // first: there is no moment with more
		if err := l.changeElement(ctx, fmt.Sprintf("add element inet %s public_only { %s }", l.tableName(), s.Address)); err != nil {
			return err
		}
	}
	return l.changeElement(ctx, fmt.Sprintf("add element inet %s internet { %s }", l.tableName(), s.Address))
}

// denyInternet undoes allowInternet; a table or an element that is gone allows
// nothing.
func (l *Local) denyInternet(ctx context.Context, s *state) error {
	sets := []string{"internet"}
	if s.PublicOnly {
		sets = append(sets, "public_only")
	}
	for _, set := range sets {
		err := l.changeElement(ctx, fmt.Sprintf("delete element inet %s %s { %s }", l.tableName(), set, s.Address))
		if err != nil && !strings.Contains(err.Error(), "No such file or directory") {
			return err
		}
	}
	return nil
}

// elementChanges collects statements for the next run of nft. One takes some
// 30 ms, nearly all of it waiting inside the kernel, however much it changes; so
// whatever comes up during a run goes into the next one together.
type elementChanges struct {
	mu      sync.Mutex
	waiting []elementChange
	running bool
}

type elementChange struct {
	statement string
	done      chan error // holds one
}

func (l *Local) changeElement(ctx context.Context, statement string) error {
	change := elementChange{statement, make(chan error, 1)}
	l.elements.mu.Lock()
	l.elements.waiting = append(l.elements.waiting, change)
	if !l.elements.running {
		l.elements.running = true
		// Others may be in the batch, so it does not end with our context.
		go l.runElementChanges(context.WithoutCancel(ctx))
	}
	l.elements.mu.Unlock()
	select {
	case err := <-change.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Local) runElementChanges(ctx context.Context) {
	for {
		l.elements.mu.Lock()
		batch := l.elements.waiting
		l.elements.waiting = nil
		if len(batch) == 0 {
			l.elements.running = false
			l.elements.mu.Unlock()
			return
		}
		l.elements.mu.Unlock()
		unlock, err := l.lockInstance(ctx)
		if err != nil {
			for _, change := range batch {
				change.done <- err
			}
			continue
		}
		var script strings.Builder
		for _, change := range batch {
			script.WriteString(change.statement + "\n")
		}
		err = nft(script.String())
		for _, change := range batch {
			if err != nil && len(batch) > 1 { // one is at fault, find out which
				change.done <- nft(change.statement + "\n")
			} else {
				change.done <- err
			}
		}
		unlock()
	}
}

// removeFilter takes the tables away.
func (l *Local) removeFilter() error {
	var script strings.Builder
	for _, family := range []byte{unix.NFPROTO_INET, unix.NFPROTO_BRIDGE} {
		if l.hasTable(family) {
			name := map[byte]string{unix.NFPROTO_INET: "inet", unix.NFPROTO_BRIDGE: "bridge"}[family]
			fmt.Fprintf(&script, "delete table %s %s\n", name, l.tableName())
		}
	}
	if script.Len() == 0 {
		return nil
	}
	return nft(script.String())
}

// nft runs a script as one transaction.
func nft(script string) error {
	tool, err := findTool("nft")
	if err != nil {
		return loom.NewError(loom.Unavailable, "Local machines need the program “nft”: install the Debian package nftables.")
	}
	cmd := command(context.Background(), tool, "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = []string{"LC_ALL=C"} // denyInternet reads its words
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return &loom.Error{Kind: loom.Unavailable, Message: "The packet filter of this host (nft) refused the rules that keep machines apart.",
			Err: errors.Join(err, fmt.Errorf("%s", strings.TrimSpace(out.String())))}
	}
	return nil
}
