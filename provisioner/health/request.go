package health

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"loom/provisioner/remote"
)

// maxBody is how much of a response is read, in bytes.
const maxBody = 64 << 10

// Machine is what checks from outside connect to.
type Machine struct {
	// Target is where SSH goes; checks go the same way, to other ports.
	Target remote.Target
	// Addresses are those recorded for the machine, Hostname its name, which stands for
	// the address of Target. Nothing else is connected to.
	Addresses []string
	Hostname  string
}

// Request is a check by HTTP. Its macros are expanded.
type Request struct {
	URL string
	// First and Last are the statuses that pass.
	First, Last int
	// Contains, if any, must be in the first 64 KB of the body.
	Contains string
	Timeout  time.Duration
}

// errElsewhere refuses a host that is not the machine.
var errElsewhere = errors.New("the URL leads to another machine")

// Fetch carries out a check by HTTP. It follows no redirects: a redirect is a response. The
// certificate of the machine is not verified, since machines have their own.
func Fetch(ctx context.Context, d *remote.Dialer, m Machine, r Request) Result {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return Result{Message: shorten("not a URL: " + r.URL)}
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, hostPort string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(hostPort)
			if err != nil {
				return nil, err
			}
			number, err := strconv.Atoi(port)
			if err != nil {
				return nil, err
			}
			return connect(ctx, d, m, host, number)
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as said
		DisableKeepAlives: true, MaxResponseHeaderBytes: maxBody,
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return Result{Message: shorten(err.Error())}
	}
	request.Header.Set("User-Agent", "loom-check")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Result{Message: trouble(err, r.Timeout)}
	}
	defer response.Body.Close()
	if response.StatusCode < r.First || response.StatusCode > r.Last {
		return Result{Message: fmt.Sprintf("HTTP status %d", response.StatusCode)}
	}
	if r.Contains == "" {
		return Result{Passed: true}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	switch {
	case bytes.Contains(body, []byte(r.Contains)):
		return Result{Passed: true}
	case err != nil:
		return Result{Message: trouble(err, r.Timeout)}
	}
	return Result{Message: "The response does not contain the text that the check expects."}
}

// Open carries out a check by TCP: the port accepts a connection.
func Open(ctx context.Context, d *remote.Dialer, m Machine, port int, timeout time.Duration) Result {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	socket, err := connect(ctx, d, m, m.Target.Address, port)
	if err != nil {
		return Result{Message: trouble(err, timeout)}
	}
	_ = socket.Close()
	return Result{Passed: true}
}

// connect opens a connection to a port of the machine, under one of its addresses.
func connect(ctx context.Context, d *remote.Dialer, m Machine, host string, port int) (net.Conn, error) {
	target := m.Target
	if host != m.Hostname && host != target.Address {
		known := false
		for _, address := range m.Addresses {
			known = known || address == host
		}
		if !known {
			return nil, errElsewhere
		}
		target.Address = host
	}
	addr, err := netip.ParseAddr(target.Address)
	if len(target.Jump) > 0 && err == nil && (addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() || addr.IsMulticast()) {
		return nil, errElsewhere // it would be the jump host
	}
	return d.Connect(ctx, target, port)
}

// trouble says in a few words what a connection died of, without addresses.
func trouble(err error, limit time.Duration) string {
	var timeout net.Error
	switch {
	case errors.Is(err, errElsewhere):
		return errElsewhere.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no response within %s", limit)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed without a response"
	}
	return shorten(err.Error())
}
