package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"loom/provisioner/remote/sshtest"
)

// reach is a shell command that succeeds when a TCP port answers.
func reach(address string, port int) string {
	return fmt.Sprintf("timeout 1 bash -c 'exec 3<>/dev/tcp/%s/%d'", address, port)
}

// reaches is reach for what must answer, if slowly, on a busy host.
func reaches(address string, port int) string {
	return strings.Replace(reach(address, port), "timeout 1 ", "timeout 30 ", 1)
}

// rawUDP is a shell command that sends a datagram from any address.
func rawUDP(from, to string, port int, text string) string {
	return fmt.Sprintf(`python3 -c 'import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
d = b"%s"
u = struct.pack("!HHHH", 4000, %d, 8 + len(d), 0) + d
s.sendto(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(u), 1, 0, 64, 17, 0, socket.inet_aton("%s"), socket.inet_aton("%s")) + u, ("%[4]s", 0))'`, text, port, from, to)
}

// TestNetworkKeepsApart tries what a machine must and must not reach.
func TestNetworkKeepsApart(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	outside := newOutside(t, b)
	online := b.spec("acme", 1)
	online.Provider.Fields["internet"], online.Reach.Private = "on", true
	public := b.spec("acme", 3)
	public.Provider.Fields["internet"] = "on"
	a0, a1, other := b.create(t, b.spec("acme", 0)), b.create(t, online), b.create(t, b.spec("umbrella", 0))
	a3 := b.create(t, public)

	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	// A control first: the port is open for whoever may come.
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()

	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	var attempts strings.Builder
	for _, a := range addresses {
		ip := a.(*net.IPNet).IP.To4()
		if ip == nil || ip.IsLoopback() || ip[0] == 10 && ip[1] != parseIP(a0.Address)[1] {
			continue // the last are maybe of another instance, which may go away any moment
		}
		tried++
		fmt.Fprintf(&attempts, "(%s 2>/dev/null && echo %s) &\n", reach(ip.String(), port), ip)
	}
	for _, m := range []MachineInfo{a0, a1} {
		if out := b.must(t, m, attempts.String()+"wait"); out != "" {
			t.Errorf("%s reaches the host at %s", m.Hostname, out)
		}
	}
	if tried < 2 { // the bridge's own address and at least one more
		t.Errorf("only %d addresses of the host tried", tried)
	}
	b.must(t, a0, reaches(a1.Address, 22))
	b.must(t, a1, reaches(a0.Address, 22))
	for from, to := range map[*MachineInfo]MachineInfo{&a0: other, &a1: other, &other: a0} {
		if _, err := b.run(t, *from, reach(to.Address, 22)); err == nil {
			t.Errorf("%s of tenant %s reaches %s of tenant %s", from.Address, from.Tenant, to.Address, to.Tenant)
		}
	}

	b.must(t, a1, reaches(outside.address, 80))
	if from := <-outside.seen; from != outside.host {
		t.Errorf("a machine's packets come from %s outside, want the host's %s", from, outside.host)
	}
	// One of a tenant without private networks reaches public addresses only, and resolvers.
	b.must(t, a3, reaches(outside.public, 80))
	<-outside.seen
	refuses := func(m MachineInfo, address string) {
		t.Helper()
		var refused *ssh.ExitError
		if _, err := b.run(t, m, reaches(address, 80)); !errors.As(err, &refused) || refused.ExitStatus() == 124 { // of timeout
			t.Errorf("%s reaches %s, or is not told at once that it does not: %v", m.Hostname, address, err)
		}
	}
	refuses(a3, outside.address)
	for _, m := range []MachineInfo{a1, a3} {
		refuses(m, "169.254.169.254")
		refuses(m, "100.100.100.200")
	}
	var refused *ssh.ExitError
	if _, err := b.run(t, a0, reaches(outside.address, 80)); !errors.As(err, &refused) || refused.ExitStatus() == 124 { // of timeout
		t.Errorf("a machine without internet reaches the outside, or is not told at once that it does not: %v", err)
	}

	// A machine that takes the address of a luckier one of another tenant.
	b.must(t, other, rawUDP(a1.Address, outside.address, 53, "forged"))
	b.must(t, a1, rawUDP(a1.Address, outside.address, 53, "true"))
	if got := <-outside.datagrams; got != "true" {
		t.Errorf("the outside got %q from a forged address", got)
	}

	// Whoever restarts the host's firewall throws the table away; the next
	// machine brings it back, for all.
	if err := b.removeFilter(); err != nil {
		t.Fatal(err)
	}
	b.create(t, b.spec("acme", 2))
	if _, err := b.run(t, a0, reach(other.Address, 22)); err == nil {
		t.Error("tenants reach each other after the packet filter was reloaded")
	}
	b.must(t, a1, reaches(outside.address, 80))
	refuses(a3, outside.address)
	b.delete(t, public)
	if table := b.nftList(t); strings.Contains(table, a3.Address) {
		t.Errorf("the deleted machine's address is left in the packet filter:\n%s", table)
	}

	b.delete(t, online)
	if table := b.nftList(t); strings.Contains(table, a1.Address) {
		t.Errorf("the deleted machine's address is left in the packet filter:\n%s", table)
	}
	bridge, err := netlink.LinkByName(b.bridgeName(0))
	if err != nil {
		t.Fatal(err)
	}
	home, err := b.ensureTenant(b.ctx, "acme")
	if err != nil || bridge.Attrs().HardwareAddr.String() != b.hardwareAddr(home.gateway()).String() {
		t.Errorf("the bridge's hardware address is %s, %v: it follows its ports", bridge.Attrs().HardwareAddr, err)
	}
}

// TestResolversAnswer: a machine with internet reaches the host's resolvers, also where these are in a
// private network and the machine reaches no other; of them it reaches port 53 only.
func TestResolversAnswer(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	outside := newOutside(t, b)
	b.resolvers = func() string { return "nameserver " + outside.address + "\n" }
	public := b.spec("acme", 1)
	public.Provider.Fields["internet"] = "on"
	offline, m := b.create(t, b.spec("acme", 0)), b.create(t, public)
	if out := b.must(t, m, "cat /etc/resolv.conf"); out != "nameserver "+outside.address {
		t.Errorf("a machine asks %q", out)
	}
	ask := func(m MachineInfo, text string) string { return rawUDP(m.Address, outside.address, 53, text) }
	_, _ = b.run(t, offline, ask(offline, "without internet")) // refused, and told so or not
	b.must(t, m, ask(m, "asked"))
	if got := <-outside.datagrams; got != "asked" {
		t.Errorf("the resolver got %q", got)
	}
	b.must(t, m, reaches(outside.public, 80))
	<-outside.seen
	var refused *ssh.ExitError
	if _, err := b.run(t, m, reaches(outside.address, 80)); !errors.As(err, &refused) || refused.ExitStatus() == 124 { // of timeout
		t.Errorf("a machine reaches port 80 of the resolver, or is not told at once that it does not: %v", err)
	}
	if table := b.nftList(t); !strings.Contains(table, "ip daddr @resolvers tcp dport 53 accept") {
		t.Errorf("resolvers are not asked over TCP:\n%s", table)
	}
}

// wire is a packet socket inside of a machine's network, as root of a machine of an earlier
// release has one.
type wire struct {
	t     *testing.T
	fd    int
	mac   net.HardwareAddr
	ip    net.IP
	index int
}

func (b *bundle) wire(t *testing.T, m MachineInfo) *wire {
	t.Helper()
	w, err := onThread(func() (*wire, error) {
		ns, err := netns.GetFromPid(m.PID)
		if err != nil {
			return nil, err
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return nil, err
		}
		eth, err := net.InterfaceByName("eth0")
		if err != nil {
			return nil, err
		}
		all := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
		if err != nil {
			return nil, err
		}
		return &wire{t: t, fd: fd, mac: eth.HardwareAddr, ip: parseIP(m.Address), index: eth.Index}, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: eth.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(w.fd) })
	return w
}

// frame sends one; kind is that of the payload.
func (w *wire) frame(to, from net.HardwareAddr, kind uint16, payload []byte) {
	w.t.Helper()
	frame := binary.BigEndian.AppendUint16(append(append([]byte{}, to...), from...), kind)
	frame = append(frame, payload...)
	frame = append(frame, make([]byte, max(0, 60-len(frame)))...)
	if err := unix.Sendto(w.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: w.index, Halen: 6}); err != nil && !errors.Is(err, unix.ENOBUFS) {
		w.t.Fatal(err)
	}
}

// ask asks who has an address, in the name of a machine.
func (w *wire) ask(mac net.HardwareAddr, sender, target net.IP) {
	w.t.Helper()
	arp := append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, mac...)
	arp = append(append(append(arp, sender.To4()...), 0, 0, 0, 0, 0, 0), target.To4()...)
	w.frame(net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, w.mac, unix.ETH_P_ARP, arp)
}

// answers reads until one of the addresses has answered, and gives it.
func (w *wire) answers(targets ...net.IP) net.IP {
	w.t.Helper()
	_ = unix.SetsockoptTimeval(w.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
	for data := make([]byte, 2000); ; {
		n, _, err := unix.Recvfrom(w.fd, data, 0)
		if err != nil {
			w.t.Fatalf("no answer from %v: %v", targets, err)
		}
		if n < 42 || binary.BigEndian.Uint16(data[12:]) != unix.ETH_P_ARP || data[21] != 2 {
			continue
		}
		for _, target := range targets {
			if net.IP(data[28:32]).Equal(target) {
				return target
			}
		}
	}
}

// TestNamesAreOnesOwn: a machine speaks in its own name only, in ARP and in IPv4.
func TestNamesAreOnesOwn(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	outside := newOutside(t, b)
	lucky := b.spec("acme", 1)
	lucky.Provider.Fields["internet"], lucky.Reach.Private = "on", true
	m, beside := b.create(t, b.spec("acme", 0)), b.create(t, lucky)
	home, err := b.ensureTenant(b.ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.canFilterCables(); err != nil {
		sshtest.SkipHere(t, "this kernel does not filter what bridges take (nf_tables of the family bridge): %v", err)
	}
	bridge, err := netlink.LinkByName(home.bridge)
	if err != nil {
		t.Fatal(err)
	}
	w := b.wire(t, m)
	sources := []net.IP{parseIP(beside.Address)}
	for i := range uint32(300) {
		sources = append(sources, addressAt(home.subnet.IP, 2+i), addressAt(net.IPv4(11, 1, 0, 0), i))
	}
	for _, source := range sources {
		if !source.Equal(w.ip) {
			w.ask(w.mac, source, home.gateway())
		}
	}
	w.ask(w.mac, w.ip, home.gateway()) // its own name is fine, and ends the waiting
	w.answers(home.gateway())
	neighbors, err := whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(bridge.Attrs().Index, netlink.FAMILY_V4) })
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, n := range neighbors {
		known[n.IP.String()] = fmt.Sprint(n.HardwareAddr, n.State)
	}
	want := map[string]string{}
	for _, one := range []MachineInfo{m, beside} {
		want[one.Address] = fmt.Sprint(b.hardwareAddr(parseIP(one.Address)), netlink.NUD_PERMANENT)
	}
	if fmt.Sprint(known) != fmt.Sprint(want) {
		t.Errorf("the host has the neighbors %v, want %v", known, want)
	}
	// Nor does another machine believe it.
	hidden := b.wire(t, beside)
	w.ask(w.mac, home.gateway(), parseIP(beside.Address))
	w.ask(w.mac, w.ip, parseIP(beside.Address))
	w.answers(parseIP(beside.Address))
	_ = unix.SetNonblock(hidden.fd, true)
	for data := make([]byte, 2000); ; {
		n, _, err := unix.Recvfrom(hidden.fd, data, 0)
		if err != nil {
			break
		}
		if n >= 42 && binary.BigEndian.Uint16(data[12:]) == unix.ETH_P_ARP && net.IP(data[28:32]).Equal(home.gateway()) && !bytes.Equal(data[22:28], b.hardwareAddr(home.gateway())) {
			t.Error("ARP in the name of the gateway reaches another machine")
		}
	}
	// Rights to internet are not had by the address of another.
	b.must(t, m, rawUDP(beside.Address, outside.address, 53, "forged"))
	b.must(t, beside, rawUDP(beside.Address, outside.address, 53, "true"))
	if got := <-outside.datagrams; got != "true" {
		t.Errorf("the outside got %q from the address of another machine", got)
	}
	b.delete(t, lucky)
	if neighbors, err := netlink.NeighList(bridge.Attrs().Index, netlink.FAMILY_V4); err == nil && len(neighbors) != 1 {
		t.Errorf("neighbors after a machine is gone: %v", neighbors)
	}
}

// TestErrorsOfOthers: a machine makes up no errors of the network about connections of the
// host.
func TestErrorsOfOthers(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	outside := newOutside(t, b)
	m := b.create(t, b.spec("acme", 0))
	conn, err := net.Dial("udp4", outside.address+":53")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if got := <-outside.datagrams; got != "hello" {
		t.Fatalf("the outside got %q", got)
	}
	mtu := func() (value int) {
		raw, err := conn.(*net.UDPConn).SyscallConn()
		if err == nil {
			err = errors.Join(raw.Control(func(fd uintptr) { value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU) }), err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	before := mtu()
	local := conn.LocalAddr().(*net.UDPAddr)
	for _, code := range []int{3, 4} { // no such port, and needs fragments of 600 bytes
		b.must(t, m, fmt.Sprintf(`python3 -c 'import socket, struct
def ck(b):
    t = sum(struct.unpack("!%%dH" %% (len(b) // 2), b))
    t = (t >> 16) + (t & 0xffff)
    return ~(t + (t >> 16)) & 0xffff
i = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 1400, 1, 0x4000, 64, 17, 0, socket.inet_aton("%s"), socket.inet_aton("%s"))
i = i[:10] + struct.pack("!H", ck(i)) + i[12:] + struct.pack("!HHHH", %d, 53, 1380, 0)
p = struct.pack("!BBHHH", 3, %d, 0, 0, 600) + i
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.sendto(p[:2] + struct.pack("!H", ck(p)) + p[4:], ("%s", 0))'`, local.IP, outside.address, local.Port, code, local.IP))
		if _, err := conn.Write([]byte("again")); err != nil {
			t.Errorf("after a forged error of code %d: %v", code, err)
		} else {
			<-outside.datagrams
		}
	}
	if after := mtu(); after != before {
		t.Errorf("the way to %s takes packets of %d bytes after a forged error, %d before", outside.address, after, before)
	}
}

// TestHostAnswersForItself: ARP of the host is about the address of the bridge only.
func TestHostAnswersForItself(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	outside := newOutside(t, b)
	m, other := b.create(t, b.spec("acme", 0)), b.create(t, b.spec("umbrella", 0))
	w := b.wire(t, m)
	own, err := b.ensureTenant(b.ctx, m.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := b.ensureTenant(b.ctx, other.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []net.IP{net.ParseIP(outside.host).To4(), foreign.gateway()} {
		w.ask(w.mac, w.ip, target)
		w.ask(w.mac, w.ip, own.gateway())
		if got := w.answers(own.gateway(), target); !got.Equal(own.gateway()) {
			t.Errorf("the host tells a machine that it has %s", got)
			w.answers(own.gateway())
		}
	}
}

// TestConnectionsHaveAShare: a machine with internet does not take all connections that the
// host keeps track of.
func TestConnectionsHaveAShare(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	outside := newOutside(t, b)
	var machines []MachineInfo
	for i := range 2 {
		spec := b.spec("acme", i)
		spec.Provider.Fields["internet"], spec.Reach.Private = "on", true
		machines = append(machines, b.create(t, spec))
	}
	if err := b.canCount(); err != nil {
		sshtest.SkipHere(t, "this kernel does not count connections (nft_connlimit): %v", err)
	}
	share := connections()
	b.must(t, machines[0], fmt.Sprintf(`python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for port in range(1000, 1000 + %d):
    try: s.sendto(b"x", ("%s", port))
    except OSError: pass'`, 2*share+5000, outside.address))
	flows, err := whole(func() ([]*netlink.ConntrackFlow, error) {
		return netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
	})
	if err != nil {
		sshtest.SkipHere(t, "this kernel does not list connections (nf_conntrack_netlink): %v", err)
	}
	n := 0
	for _, flow := range flows {
		if flow.Forward.SrcIP.String() == machines[0].Address && flow.Forward.DstIP.String() == outside.address {
			n++
		}
	}
	if n < share/2 || n > share+share/8 {
		t.Errorf("%d connections of one machine, its share is %d", n, share)
	}
	b.must(t, machines[1], reaches(outside.address, 80))
	<-outside.seen
}

// TestBridgeLearnsNothing: frames from addresses that are not those of the machine make no
// entries of the bridge and reach nobody.
func TestBridgeLearnsNothing(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	own, m, beside, _ := b.neighbors(t)
	w, listens := b.wire(t, m), b.wire(t, beside)
	const frames = 3000
	const kind = 0x88b5
	for i := range frames {
		w.frame(b.hardwareAddr(parseIP(beside.Address)), net.HardwareAddr{2, 0xee, 0, 0, byte(i >> 8), byte(i)}, kind, nil)
	}
	// That of another machine is not taken over either.
	w.frame(b.hardwareAddr(parseIP(beside.Address)), b.hardwareAddr(parseIP(beside.Address)), kind, nil)
	b.must(t, m, reaches(beside.Address, 22)) // what came before has arrived
	entries, err := whole(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, unix.AF_BRIDGE) })
	if err != nil {
		t.Fatal(err)
	}
	cables := map[int]string{}
	for _, one := range []MachineInfo{m, beside} {
		cable, err := netlink.LinkByName(b.cableName(one.Address))
		if err != nil {
			t.Fatal(err)
		}
		cables[cable.Attrs().Index] = b.hardwareAddr(parseIP(one.Address)).String()
	}
	found := map[int]int{}
	for _, e := range entries {
		if mac, ours := cables[e.LinkIndex]; ours && e.State&netlink.NUD_PERMANENT == 0 {
			found[e.LinkIndex]++
			if e.HardwareAddr.String() != mac || e.State != netlink.NUD_NOARP {
				t.Fatalf("the bridge learned %s (state %d)", e.HardwareAddr, e.State)
			}
		}
	}
	for index, mac := range cables {
		if found[index] != 1 {
			t.Errorf("%d entries for %s", found[index], mac)
		}
	}
	_ = unix.SetNonblock(listens.fd, true)
	for data := make([]byte, 2000); ; {
		n, _, err := unix.Recvfrom(listens.fd, data, 0)
		if err != nil {
			break
		}
		if n >= 14 && binary.BigEndian.Uint16(data[12:]) == kind {
			t.Fatalf("a forged frame from %s arrived", net.HardwareAddr(data[6:12]))
		}
	}
	b.delete(t, own)
}

// outside is a host on the other side of this one: a network namespace with an
// echo of who came.
type outside struct {
	// address is in a private network, public is not.
	address, public, host string
	seen, datagrams       chan string
}

func newOutside(t *testing.T, b *bundle) *outside {
	t.Helper()
	third := int(b.hardwareAddr(net.IPv4(0, 0, 0, 0))[1])
	o := &outside{host: fmt.Sprintf("198.18.%d.1", third), address: fmt.Sprintf("198.18.%d.2", third), public: fmt.Sprintf("7.198.%d.2", third), seen: make(chan string, 10), datagrams: make(chan string, 10)}
	type opened struct {
		tcp net.Listener
		udp net.PacketConn
		err error
	}
	done := make(chan opened)
	name := "lt" + b.hash + "o"
	go func() {
		// The thread is spoilt and ends with the goroutine.
		runtime.LockOSThread()
		host, err := netns.Get()
		if err != nil {
			done <- opened{err: err}
			return
		}
		defer host.Close()
		inside, err := netns.New()
		if err != nil {
			done <- opened{err: err}
			return
		}
		defer inside.Close()
		handle, err := netlink.NewHandleAt(host)
		if err != nil {
			done <- opened{err: err}
			return
		}
		defer handle.Close()
		err = handle.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, TxQLen: 1000}, PeerName: "eth0", PeerNamespace: netlink.NsFd(inside)})
		if err == nil {
			err = errors.Join(up(handle, name, o.host+"/30"), up(&netlink.Handle{}, "eth0", o.address+"/30"),
				up(handle, name, fmt.Sprintf("7.198.%d.1/30", third)), up(&netlink.Handle{}, "eth0", o.public+"/30"))
		}
		var r opened
		if err == nil {
			r.tcp, err = net.Listen("tcp4", "0.0.0.0:80")
		}
		if err == nil {
			r.udp, err = net.ListenPacket("udp4", o.address+":53")
		}
		r.err = err
		done <- r
	}()
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() {
		r.tcp.Close()
		r.udp.Close()
		if link, err := netlink.LinkByName(name); err == nil {
			_ = netlink.LinkDel(link)
		}
	})
	go func() {
		for {
			conn, err := r.tcp.Accept()
			if err != nil {
				return
			}
			o.seen <- conn.RemoteAddr().(*net.TCPAddr).IP.String()
			conn.Close()
		}
	}()
	go func() {
		data := make([]byte, 100)
		for {
			n, _, err := r.udp.ReadFrom(data)
			if err != nil {
				return
			}
			o.datagrams <- string(data[:n])
		}
	}()
	return o
}

func up(h *netlink.Handle, name, address string) error {
	link, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	a, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return errors.Join(h.AddrAdd(link, a), h.LinkSetUp(link))
}

func TestFilterScriptLoads(t *testing.T) {
	t.Parallel()
	b := openLocal(t, t.TempDir())
	tool, err := findTool("nft")
	if b.Ready() != nil || err != nil {
		t.Skip("needs root and nft")
	}
	in := instance{Range: "10.200.0.0/16"}
	first, err := in.net(b.Local, 0)
	if err != nil {
		t.Fatal(err)
	}
	last, err := in.net(b.Local, 63)
	if err != nil {
		t.Fatal(err)
	}
	if got := last.subnet.String() + " " + last.gateway().String(); got != "10.200.252.0/22 10.200.252.1" {
		t.Errorf("last network of a range: %s", got)
	}
	for _, internet := range [][]string{nil, {"10.200.0.7", "10.200.252.9"}} {
		cmd := exec.Command(tool, "--check", "-f", "-")
		nets := []tenantNet{first, last}
		cmd.Stdin = strings.NewReader(b.filterScript(nets, internet, internet) + b.cableScript(nets))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("nft refuses the script: %v\n%s", err, out)
		}
	}
}

func TestRangeAvoidsWhatIsThere(t *testing.T) {
	t.Parallel()
	cidr := func(text string) *net.IPNet {
		_, n, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		candidate, taken string
		want             bool
	}{
		{"10.130.0.0/16", "10.130.7.0/24", true}, {"10.130.0.0/16", "10.0.0.0/8", true},
		{"10.130.0.0/16", "10.131.0.0/16", false}, {"10.130.0.0/16", "10.130.255.255/32", true}, {"10.130.0.0/16", "192.0.2.0/24", false},
	} {
		if got := overlapsAny(cidr(c.candidate), []*net.IPNet{cidr(c.taken)}); got != c.want {
			t.Errorf("%s and %s overlap: %v", c.candidate, c.taken, got)
		}
	}
	taken, err := takenNetworks()
	if err != nil {
		t.Fatal(err)
	}
	for _, hash := range []string{"000000", "ffffff", "3fa9c1"} {
		got, err := chooseRange(hash)
		if err != nil || overlapsAny(cidr(got), taken) || cidr(got).String() != got {
			t.Errorf("range for %s: %s, %v", hash, got, err)
		}
	}
}

// TestInstallsPackages installs a package on a machine without updating lists
// first: they are in the base root, and the way to the registry is open.
func TestInstallsPackages(t *testing.T) {
	t.Parallel()
	b := setUpLocal(t)
	fetch := exec.Command("apt-get", "-qq", "download", "tree")
	fetch.Dir = t.TempDir()
	if out, err := fetch.CombinedOutput(); err != nil {
		sshtest.SkipHere(t, "this host itself does not reach a package registry: %v\n%s", err, out)
	}
	spec := b.spec("acme", 0)
	spec.Provider.Fields["internet"], spec.Reach.Private = true, true // the registry may be in one
	m := b.create(t, spec)
	b.must(t, m, "DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends tree && tree --version")
	b.delete(t, spec)
}
