package httpx

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// from sets the connections of a listener to addresses of our choice, in turn.
type from struct {
	net.Listener
	addresses []string
}

type fromConn struct {
	net.Conn
	address net.Addr
}

func (c fromConn) RemoteAddr() net.Addr { return c.address }

func (f *from) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	at := f.addresses[0]
	f.addresses = f.addresses[1:]
	return fromConn{c, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(at), 7))}, nil
}

// TestConnectionsAreBounded: an address has so many, except for proxies and this host, and
// all together have so many; what is more is closed, and who leaves makes room.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	type step struct {
		address string
		refused bool
	}
	for name, c := range map[string]struct {
		most, each int
		steps      []step
	}{
		"of an address":         {9, 2, []step{{"192.0.2.1", false}, {"192.0.2.1", false}, {"192.0.2.1", true}, {"192.0.2.2", false}}},
		"of a network":          {9, 1, []step{{"2001:db8::1", false}, {"2001:db8::2", true}, {"2001:db8:0:1::1", false}}},
		"of a proxy":            {9, 1, []step{{"10.0.0.1", false}, {"10.0.0.1", false}, {"::ffff:10.0.0.1", false}}},
		"of this host":          {9, 1, []step{{"127.0.0.1", false}, {"127.0.0.1", false}, {"::1", false}}},
		"of all":                {2, 9, []step{{"127.0.0.1", false}, {"192.0.2.1", false}, {"192.0.2.2", true}, {"127.0.0.1", true}}},
		"a tenth for others":    {10, 99, append(slices.Repeat([]step{{"127.0.0.1", false}}, 9), step{"::1", true}, step{"192.0.2.1", false}, step{"192.0.2.2", true})},
		"a tenth for this host": {10, 99, append(slices.Repeat([]step{{"10.0.0.1", false}}, 9), step{"192.0.2.1", true}, step{"127.0.0.1", false})},
		"without any most":      {0, 1, []step{{"192.0.2.1", false}, {"192.0.2.1", true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			inner := &from{Listener: tcp}
			for _, s := range c.steps {
				inner.addresses = append(inner.addresses, s.address)
			}
			inner.addresses = append(inner.addresses, c.steps[0].address)
			l := Listen(inner, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}).(*listener)
			l.most, l.each = c.most, c.each
			accepted := make(chan net.Conn, len(c.steps)+1)
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					accepted <- conn
					conn.Write([]byte("in")) //nolint:errcheck // the other end sees
				}
			}()
			t.Cleanup(func() { tcp.Close() })
			dial := func() (string, error) {
				conn, err := net.Dial("tcp", tcp.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				conn.SetReadDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // or it ends with the test
				said := make([]byte, 2)
				n, err := io.ReadFull(conn, said)
				return string(said[:n]), err
			}
			for i, s := range c.steps {
				said, err := dial()
				if s.refused != (said == "") || s.refused == (err == nil) || errors.Is(err, net.ErrClosed) {
					t.Errorf("step %d from %s: %q, %v", i, s.address, said, err)
				}
			}
			first := <-accepted
			first.Close()
			first.Close() // counts once
			if said, err := dial(); said != "in" {
				t.Errorf("once the first was closed: %q, %v", said, err)
			}
			for len(accepted) > 0 {
				(<-accepted).Close()
			}
			if l.all != 0 || l.here != 0 || len(l.of) != 0 {
				t.Error(fmt.Sprint("left: ", l.all, l.of))
			}
		})
	}
}

// TestUnreadAnswersTakeLittle: the kernel keeps only so much of an answer for a client, and a
// connection that got a 429 is closed with what else waits in it.
func TestUnreadAnswersTakeLittle(t *testing.T) {
	t.Parallel()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(Wrap(slog.New(slog.DiscardHandler), WriteProblem, func(http.ResponseWriter, *http.Request) error { return tooMany(requestRetry, "too many") }))
	server.Listener.Close()
	size := make(chan int, 1)
	server.Listener = Listen(tcp, nil)
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state != http.StateNew {
			return
		}
		raw, err := c.(*connection).Conn.(*net.TCPConn).SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) {
				n, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF) //nolint:errcheck // then it is zero
				size <- n
			})
		}
		if err != nil {
			t.Error(err)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := dial(t, server)
	if _, err := io.WriteString(c, strings.Repeat("GET / HTTP/1.1\r\nHost: loom\r\n\r\n", 3)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if n := strings.Count(string(text), "429 Too Many Requests"); err != nil || n != 1 {
		t.Errorf("%d answers, %v", n, err)
	}
	if n := <-size; n == 0 || n > 2*writeBuffer { // Linux doubles it, for what it needs itself
		t.Errorf("the kernel keeps %d bytes", n)
	}
}
