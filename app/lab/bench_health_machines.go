package lab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"loom/app/wiring"
	"loom/provisioner/remote"
)

// benchMachines is the process that pretends to be machines.
type benchMachines struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
	at    machinesAt
}

// machinesAt says where they are: the machine of each user that signs in to any of the ports.
type machinesAt struct {
	Ports   []int
	HostKey string
}

// startMachines starts the process.
func startMachines(ports int) (*benchMachines, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &benchMachines{cmd: exec.Command(program, "bench-machines", fmt.Sprint(ports))}
	m.cmd.Stderr = os.Stderr
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	m.lines = bufio.NewReader(out)
	line, err := m.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m.at)
	}
	if err != nil {
		m.end()
		return nil, fmt.Errorf("start the machines: %w", err)
	}
	return m, nil
}

// end ends the process.
func (m *benchMachines) end() {
	m.in.Close()
	m.cmd.Process.Kill() //nolint:errcheck // it may have ended
	m.cmd.Wait()         //nolint:errcheck // it was killed
}

// become makes machines silent, or their services failing, or both well again, and returns
// once that holds.
func (m *benchMachines) become(state string, users []string) error {
	if _, err := fmt.Fprintln(m.in, state, strings.Join(users, " ")); err != nil {
		return err
	}
	_, err := m.lines.ReadString('\n')
	return err
}

// BenchMachines is the subcommand that pretends to be machines: an SSH server that answers
// what a look asks. The name of the user is the machine.
type BenchMachines struct {
	Ports int `arg:"" help:"Number of ports to listen on."`

	mu     sync.RWMutex
	states map[string]string
}

// Run serves until its input ends.
func (c *BenchMachines) Run(ctx context.Context, e *wiring.Environment) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	c.states = map[string]string{}
	var at machinesAt
	_, at.HostKey = remote.EncodeHostKey(signer.PublicKey())
	config := &ssh.ServerConfig{PasswordCallback: func(conn ssh.ConnMetadata, _ []byte) (*ssh.Permissions, error) {
		if c.is(conn.User(), "silent") {
			settle(ctx, time.Minute) //nolint:errcheck // whoever asked has long gone
			return nil, io.EOF
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	for range c.Ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		at.Ports = append(at.Ports, l.Addr().(*net.TCPAddr).Port)
		go c.serve(l, config)
	}
	if err := json.NewEncoder(e.Out).Encode(at); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		c.mu.Lock()
		for _, user := range words[1:] {
			c.states[user] = words[0]
		}
		c.mu.Unlock()
		fmt.Fprintln(e.Out, "done")
	}
	return nil
}

func (c *BenchMachines) is(user, state string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.states[user] == state
}

func (c *BenchMachines) serve(l net.Listener, config *ssh.ServerConfig) {
	for {
		socket, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer socket.Close()
			conn, channels, requests, err := ssh.NewServerConn(socket, config)
			if err != nil {
				return
			}
			user := conn.User()
			go func() {
				for r := range requests {
					if r.WantReply && !c.is(user, "silent") {
						r.Reply(false, nil) //nolint:errcheck // the connection is closed
					}
				}
			}()
			for channel := range channels {
				if !c.is(user, "silent") {
					go c.session(user, channel)
				}
			}
		}()
	}
}

func (c *BenchMachines) session(user string, asked ssh.NewChannel) {
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for r := range requests {
		var command struct{ Text string }
		if r.Type != "exec" || ssh.Unmarshal(r.Payload, &command) != nil {
			r.Reply(false, nil) //nolint:errcheck // the connection is closed
			continue
		}
		r.Reply(true, nil) //nolint:errcheck // the connection is closed
		stdout, stderr := answerLook(user, command.Text, c.is(user, "failing"))
		io.WriteString(channel.Stderr(), stderr)                                           //nolint:errcheck // the connection is closed
		channel.Write(stdout)                                                              //nolint:errcheck // the connection is closed
		channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0})) //nolint:errcheck // the connection is closed
		return
	}
}

var (
	markPattern  = regexp.MustCompile(`loom-[0-9a-f]{24}`)
	checkPattern = regexp.MustCompile(` check ([0-9]+)\\n`)
	sumPattern   = regexp.MustCompile(`(?m)^sum ([0-9]+) `)
)

// answerLook answers the command of package health as a machine would, see its function
// script. The first mark is that of the session, the second one that of the look.
func answerLook(user, text string, failing bool) (stdout []byte, stderr string) {
	session := markPattern.FindString(text)
	_, look, _ := strings.Cut(text, session)
	mark := markPattern.FindString(look)
	var out bytes.Buffer
	part := func(name, body string) { fmt.Fprintf(&out, "\n%s %s\n%s", mark, name, body) }
	part("boot", "c9b0a3f6-1f2e-4d3c-8b7a-0123456789ab\n")
	part("load", "0.31\n2\n")
	part("memory", "MemTotal:        4028440 kB\nMemAvailable:    3017172 kB\n")
	part("disk", "/dev/vda1         40470732  9150104  29228724      24% /\n")
	for _, check := range checkPattern.FindAllStringSubmatch(look, -1) {
		if failing {
			part("check "+check[1], "watched is not running\n")
			part("status "+check[1]+" 3", "")
		} else {
			part("check "+check[1], "watched is running\n")
			part("status "+check[1]+" 0", "")
		}
	}
	for _, file := range sumPattern.FindAllStringSubmatch(look, -1) {
		part("file "+file[1], strings.Repeat("5e", 32)+"  -\n")
	}
	part("end", "")
	return out.Bytes(), session + " 4711\n"
}
