// Package sshtest runs a real OpenSSH server for tests, on a free port of the
// loopback address, with keys of its own and everything in a temporary
// directory. Only _test files import it.
//
// The test accepts the connections and starts one "sshd -i" for each, so the
// port is free of races and a test can cut a connection. When root, the servers
// live in mount, process and host name namespaces with an overlay over /etc and empty homes and
// caches, so that a test may set up "the machine" without touching the host;
// that is also the one thing to know: without root there are no other users and
// no isolation, and tests that change the machine must ask for Isolated.
package sshtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Users of an isolated machine besides root. Password belongs to both.
const (
	SudoUser  = "tester" // may become root without a password
	PlainUser = "nosudo"
	Password  = "correct horse"
)

// Options of a server.
type Options struct {
	// Isolated demands the namespaces; the test is skipped where there are none,
	// or fails under LOOM_TEST_REQUIRE=1.
	Isolated bool
	// Config holds further lines for sshd_config.
	Config []string
	// HostKeys are the key types of the server, ed25519 and ecdsa when empty.
	HostKeys []string
	// PrivateHostKeys, in PEM form, take the place of generated ones.
	PrivateHostKeys []string
	// CertifyFor makes an authority sign a certificate for each host key, made out to
	// these names; see Server.CA. An expired one has the name "expired" among them.
	CertifyFor []string
}

// Server is a running SSH server. It ends with its test.
type Server struct {
	Address string
	Port    int
	// User to log in as with Key: root, or who runs the test.
	User string
	// Key is accepted for every user.
	Key Key
	// HostKeys by short type in base64.
	HostKeys map[string]string
	// CA is the public key of the authority that certified the host keys, if any.
	CA string
	// Isolated says whether the machine is apart from the host.
	Isolated bool
	// Dir is the temporary directory; with isolation Dir/root, Dir/home and
	// Dir/cache are the machine's /root, /home and /var/cache, and Dir/etc and Dir/lib
	// hold what the machine changed in /etc and /var/lib (to be read only).
	Dir string

	listener net.Listener
	holder   *exec.Cmd
	log      lockedBuffer
	work     sync.WaitGroup

	mu      sync.Mutex
	running map[*exec.Cmd]bool
	refuse  int
	silent  bool
	dials   int
}

// Start starts a server. The test is skipped without OpenSSH's sshd, or fails
// under LOOM_TEST_REQUIRE=1.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	sshd, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		missing(tb, "sshd is not installed (package openssh-server)")
	}
	me, err := user.Current()
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Address: "127.0.0.1", User: me.Username, HostKeys: map[string]string{}, Dir: tb.TempDir(), running: map[*exec.Cmd]bool{}}
	s.Key = NewKey(tb, "ed25519", "")
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(s.Dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	config := []string{"UsePAM no", "StrictModes no", "PermitRootLogin yes", "PasswordAuthentication yes",
		"KbdInteractiveAuthentication no", "PidFile none", "LogLevel VERBOSE",
		"AuthorizedKeysFile " + write("authorized_keys", s.Key.Authorized+"\n", 0o644) + " .ssh/authorized_keys"}
	kinds := o.HostKeys
	if len(kinds) == 0 {
		kinds = []string{"ed25519", "ecdsa"} // quick to make
	}
	hostKeys := make([]Key, 0, len(kinds))
	for _, private := range o.PrivateHostKeys {
		hostKeys = append(hostKeys, keyOf(tb, private))
	}
	if len(hostKeys) == 0 {
		for _, kind := range kinds {
			hostKeys = append(hostKeys, NewKey(tb, kind, ""))
		}
	}
	authority := NewKey(tb, "ed25519", "")
	for _, key := range hostKeys {
		s.HostKeys[key.Type] = key.Blob
		config = append(config, "HostKey "+write("host_"+key.Type, key.PEM, 0o600))
		if len(o.CertifyFor) > 0 {
			s.CA = authority.Authorized
			config = append(config, "HostCertificate "+write("host_"+key.Type+"-cert.pub", certificate(tb, authority, key, o.CertifyFor), 0o644))
		}
	}
	config = append(config, o.Config...)
	for _, dir := range []string{s.Dir, filepath.Dir(s.Dir)} { // every user reads authorized_keys
		if err := os.Chmod(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	file := write("sshd_config", strings.Join(config, "\n")+"\n", 0o600)
	if os.Geteuid() == 0 {
		s.isolate(tb)
	}
	if o.Isolated && !s.Isolated {
		missing(tb, "an isolated test machine needs root and namespaces")
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		tb.Fatal(err)
	}
	s.Port = s.listener.Addr().(*net.TCPAddr).Port
	s.work.Go(func() { s.serve(sshd, file) })
	tb.Cleanup(func() { s.stop(tb) })
	return s
}

func missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("LOOM_TEST_REQUIRE") == "1" {
		tb.Fatal(what)
	}
	tb.Skip(what)
}

// SkipHere skips a test for what this host cannot do, also where everything must run, and
// adds the reason to the file that LOOM_TEST_SKIPPED names: go test hides it otherwise.
func SkipHere(tb testing.TB, format string, args ...any) {
	tb.Helper()
	why := fmt.Sprintf(format, args...)
	if file := os.Getenv("LOOM_TEST_SKIPPED"); file != "" {
		list, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			tb.Fatal(err)
		}
		_, err = fmt.Fprintf(list, "%s: %s\n", tb.Name(), strings.Join(strings.Fields(why), " "))
		if err := errors.Join(err, list.Close()); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Skip(why)
}

// isolationScript makes the mounts and then, as process 1 of the machine, reaps
// until its standard input ends, which it does when the test process goes,
// however it goes; with process 1 everything started on the machine goes.
const isolationScript = `set -e
d=$1
mount --make-rprivate /
mount -t proc proc /proc
mkdir -p "$d/etc" "$d/work" "$d/root" "$d/home/tester" "$d/home/nosudo" "$d/cache" "$d/lib" "$d/libwork"
chmod 0700 "$d/root"
if ! mount -t overlay overlay -o "lowerdir=/etc,upperdir=$d/etc,workdir=$d/work" /etc 2>/dev/null; then
  cp -a /etc/. "$d/etc/"
  mount --bind "$d/etc" /etc
fi
# Where overlays cannot be stacked, a place of its own replaces each that tests use.
mkdir -p "$d/var" "$d/varwork" "$d/chef"
if ! mount -t overlay overlay -o "lowerdir=/var,upperdir=$d/var,workdir=$d/varwork" /var 2>/dev/null; then
  mkdir -p /var/chef
  mount --bind "$d/chef" /var/chef
fi
mount --bind "$d/root" /root
mount --bind "$d/home" /home
mount --bind "$d/cache" /var/cache
mount -t overlay overlay -o "lowerdir=/var/lib,upperdir=$d/lib,workdir=$d/libwork" /var/lib 2>/dev/null || mount --bind "$d/lib" /var/lib
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p /run/sshd
for u in tester:2001 nosudo:2002; do
  echo "${u%%:*}:x:${u##*:}:${u##*:}::/home/${u%%:*}:/bin/sh" >>/etc/passwd
  echo "${u%%:*}:x:${u##*:}:" >>/etc/group
  echo "${u%%:*}:$2:19000:0:99999:7:::" >>/etc/shadow
  chown "${u##*:}:${u##*:}" "/home/${u%%:*}"
done
mkdir -p /etc/sudoers.d
echo 'tester ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/tester
chmod 0440 /etc/sudoers.d/tester
echo '127.0.0.1 localhost testmachine' >/etc/hosts
echo testmachine >/etc/hostname
sed -i 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf
hostname testmachine
echo ready
exec 3<&0
(read -r end <&3) &
wait $!
`

// passwordHash is Password as crypt(3) with SHA-512 gives it.
const passwordHash = "$6$loomtest$RYKrRV90yQk0PrSQD6WdaS8icvE1CsmJXqiT5rEUzQxiOToAvX.PbfQUSGIRuP8h1fRFDNUuwsKaWoWtKBRaA1"

func (s *Server) isolate(tb testing.TB) {
	holder := exec.Command("sh", "-c", isolationScript, "sh", s.Dir, passwordHash)
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID}
	if _, err := holder.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	holder.Stderr = &s.log
	if err := holder.Start(); err != nil {
		return
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		_ = holder.Process.Kill()
		_ = holder.Wait()
		return
	}
	s.holder, s.Isolated = holder, true
}

func (s *Server) serve(sshd, config string) {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		socket := connection.(*net.TCPConn)
		s.mu.Lock()
		s.dials++
		refuse, silent := s.refuse > 0, s.silent
		if refuse {
			s.refuse--
		}
		s.mu.Unlock()
		switch {
		case refuse:
			_ = socket.SetLinger(0) // closing sends a reset
			_ = socket.Close()
		case silent:
			s.work.Go(func() {
				_, _ = socket.Read(make([]byte, 1<<10))
				_, _ = socket.Read(make([]byte, 1<<10))
				_ = socket.Close()
			})
		default:
			s.work.Go(func() { s.session(sshd, config, socket) })
		}
	}
}

func (s *Server) session(sshd, config string, socket *net.TCPConn) {
	file, err := socket.File()
	_ = socket.Close()
	if err != nil {
		return
	}
	defer file.Close()
	arguments := []string{sshd, "-i", "-e", "-f", config}
	if s.Isolated {
		arguments = append([]string{"nsenter", "-t", fmt.Sprint(s.holder.Process.Pid), "-m", "-u", "-p", "--"}, arguments...)
	} else if os.Geteuid() == 0 {
		// sshd wants its privilege separation directory.
		_ = os.MkdirAll("/run/sshd", 0o755)
	}
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stdin, command.Stdout, command.Stderr = file, file, &s.log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.mu.Lock()
	if err := command.Start(); err != nil {
		s.mu.Unlock()
		fmt.Fprintf(&s.log, "start sshd: %v\n", err)
		return
	}
	s.running[command] = true
	s.mu.Unlock()
	_ = command.Wait()
	s.mu.Lock()
	delete(s.running, command)
	s.mu.Unlock()
}

// Cut kills the servers of all present connections, as a machine that loses
// power would; new connections are served.
func (s *Server) Cut() { s.signal(syscall.SIGKILL) }

// Freeze stops the servers of all present connections without closing them, as
// a machine that hangs would.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

func (s *Server) signal(signal syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for command := range s.running {
		_ = syscall.Kill(-command.Process.Pid, signal)
	}
}

// Refuse resets the next n connections before they begin.
func (s *Server) Refuse(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = n
}

// Silence accepts further connections and never says a word on them.
func (s *Server) Silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
}

// Dials is the number of connections accepted so far.
func (s *Server) Dials() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials
}

func (s *Server) stop(tb testing.TB) {
	_ = s.listener.Close()
	s.Cut()
	s.work.Wait()
	if s.holder != nil {
		_ = s.holder.Process.Kill()
		_ = s.holder.Wait()
	}
	if tb.Failed() {
		tb.Logf("log of sshd:\n%s", s.log.String())
	}
}

// lockedBuffer is a buffer that several processes' output may go to.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

// Write appends.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

// String returns what was written.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
