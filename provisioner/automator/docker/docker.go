// Package docker is the automator that runs a service as a container on its
// machine.
//
// A container is named after its service and labelled with the sum of the fields it
// was made from, so that any action may run again. The package must not keep
// anything of containers but the results that it gives, and must not quote the
// command of a container: it is a piece of shell text by contract.
package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/provisioner/automator"
	"loom/provisioner/remote"
)

// Docker is the automator; the zero value is ready to use.
type Docker struct{}

// New returns the automator.
func New() Docker { return Docker{} }

// Type describes the automator type for the catalog.
func (Docker) Type() loom.PluginType { return Type() }

// portsKey is the result that holds the ports taken on a machine.
const portsKey = "ports"

// specLabel is the label of a container with the sum of the fields it was made from.
const specLabel = "loom-spec"

// bootstrapScript looks for the engine. Machines that renew themselves must not do
// so under running containers; what cannot be stopped is no trouble.
const bootstrapScript = `command -v docker >/dev/null 2>&1 || { echo 'there is no docker on this machine; use an image that has it, or a service that installs it before' >&2; exit 1; }
if [ -r /etc/os-release ] && grep -qE '^ID=.?(coreos|flatcar)' /etc/os-release; then
  systemctl stop update-engine locksmithd >/dev/null 2>&1
fi
exit 0`

// Bootstrap makes sure that the machine has a container engine that answers.
func (Docker) Bootstrap(ctx context.Context, _ *loom.TaskSpec, conn *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	out, err := conn.Exec(ctx, remote.Command{Text: automator.Directories + bootstrapScript, Root: true})
	if err != nil {
		return remote.Failure(err)
	}
	if !out.OK() {
		return refuse("%s", remote.LastLine(out.Stderr)), nil
	}
	m := &machine{conn: conn, sink: sink}
	if message, err := m.find(ctx); err != nil || message != "" {
		return failed(message, err)
	}
	return loom.TaskResult{}, nil
}

// Run carries out an action of a service. Configure, initialize and drain have
// nothing to do: a container is made from the fields of its start.
func (Docker) Run(ctx context.Context, spec *loom.TaskSpec, conn *remote.Conn, _ string, sink loom.Sink) (loom.TaskResult, error) {
	switch spec.Action {
	case loom.ActionConfigure, loom.ActionInitialize, loom.ActionDrain:
		sink.Log("loom", fmt.Sprintf("a container has nothing to %s", spec.Action))
		return loom.TaskResult{}, nil
	}
	c, err := parse(spec.Service.Action.Fields)
	if err != nil {
		return refuse("service %s: %v", spec.Service.Name, err), nil
	}
	m := &machine{conn: conn, sink: sink}
	if message, err := m.find(ctx); err != nil || message != "" {
		return failed(message, err)
	}
	s := &service{machine: m, spec: spec, container: c, name: containerName(spec.Service.Name)}
	switch spec.Action {
	case loom.ActionInstall:
		return s.install(ctx)
	case loom.ActionStart:
		return s.start(ctx)
	case loom.ActionStop:
		return s.stop(ctx)
	case loom.ActionRemove:
		return s.remove(ctx)
	}
	return refuse("a container has no action “%s”", spec.Action), nil
}

// CheckText returns the text that runs a check in the container, or asks whether that runs.
func (Docker) CheckText(spec *loom.TaskSpec, command string) string {
	name := remote.Quote(containerName(spec.Service.Name))
	if command == "" {
		inspect := "docker inspect --type container -f '{{.State.Status}}' " + name
		return "s=$(" + inspect + " 2>/dev/null) || { " + inspect + `; exit 1; } # Podman under this name talks on stderr
[ "$s" = running ] || { echo "the container is $s"; exit 1; }`
	}
	return "docker exec " + name + " sh -c " + remote.Quote(command)
}

// LogText returns the text that prints the log of the container. A container that stops, or
// goes, is waited for; the second in which it stopped may be printed again.
func (Docker) LogText(spec *loom.TaskSpec, lines int, follow bool) string {
	name := remote.Quote(containerName(spec.Service.Name))
	show := fmt.Sprintf("docker logs --tail %d ", lines)
	if !follow {
		return show + name
	}
	return show + "-f " + name + `
while :; do
  t=$(date +%s)
  until [ "$(docker inspect --type container -f '{{.State.Running}}' ` + name + ` 2>/dev/null)" = true ]; do sleep 1; done
  docker logs -f --since "$t" ` + name + ` || sleep 1
done`
}

func refuse(format string, args ...any) loom.TaskResult {
	no := false
	return loom.TaskResult{Status: 1, Message: fmt.Sprintf(format, args...), Retryable: &no}
}

func failed(message string, err error) (loom.TaskResult, error) {
	if err != nil {
		return remote.Failure(err)
	}
	return loom.TaskResult{Status: 1, Message: message}, nil
}

// containerName is how the container of a service is called on its machine.
func containerName(service string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, service)
	return "loom-" + clean
}

// machine reaches the engine of a machine.
type machine struct {
	conn *remote.Conn
	sink loom.Sink
	// root says that only root may speak to it.
	root bool
}

// find learns who may speak to the engine. A message says that nobody can.
func (m *machine) find(ctx context.Context) (message string, err error) {
	const ask = `docker ps -q >/dev/null` // docker info tells the reason on standard output
	out, err := m.conn.Exec(ctx, remote.Command{Text: ask})
	if err == nil && out.OK() || m.conn.User() == "root" {
		if err == nil && !out.OK() {
			message = "the container engine does not answer: " + remote.LastLine(out.Stderr)
		}
		return message, err
	}
	if err != nil {
		return "", err
	}
	m.root = true
	if out, err = m.conn.Exec(ctx, remote.Command{Text: ask, Root: true}); err != nil || out.OK() {
		return "", err
	}
	return "the container engine does not answer: " + remote.LastLine(out.Stderr), nil
}

// run runs a command of the engine; stdin may be empty.
func (m *machine) run(ctx context.Context, text, stdin string, show bool) (remote.Outcome, error) {
	command := remote.Command{Text: text, Root: m.root, Stdin: strings.NewReader(stdin)}
	if show {
		command.Line = m.sink.Log
	}
	return m.conn.Exec(ctx, command)
}

// service is a service of a node, with its container.
type service struct {
	*machine
	spec      *loom.TaskSpec
	container container
	name      string
}

// install makes the directories and fetches the image.
func (s *service) install(ctx context.Context) (loom.TaskResult, error) {
	var text strings.Builder
	for _, v := range s.container.Volumes {
		dir := remote.Quote(v.Host)
		fmt.Fprintf(&text, "[ -e %[1]s ] || { mkdir -p %[1]s && chown %[2]s %[1]s; } || exit 1\n", dir, remote.Quote(s.conn.User()+":"))
	}
	if text.Len() > 0 {
		if out, err := s.conn.Exec(ctx, remote.Command{Text: text.String(), Root: true, Line: s.sink.Log}); err != nil {
			return remote.Failure(err)
		} else if !out.OK() {
			return loom.TaskResult{Status: 1, Message: "the directories for volumes could not be made: " + remote.LastLine(out.Stderr), Stderr: out.Stderr}, nil
		}
	}
	what := "docker pull " + s.container.Image
	s.sink.Log("loom", what)
	out, err := s.run(ctx, "docker pull "+remote.Quote(s.container.Image), "", true)
	if err == nil && !out.OK() {
		// Images that were built or loaded on the machine have no registry, and one that
		// is there runs whether its registry answers or not.
		there, err := s.run(ctx, "docker image inspect "+remote.Quote(s.container.Image)+" >/dev/null 2>&1", "", false)
		if err != nil {
			return remote.Failure(err)
		}
		if there.OK() {
			s.sink.Log("loom", fmt.Sprintf("warning: %s exited with %d; the image that the machine has is used", what, out.Code))
			return loom.TaskResult{}, nil
		}
	}
	return s.ended(out, err)(what)
}

// ended makes a result of how a command of the engine ended.
func (s *service) ended(out remote.Outcome, err error) func(what string) (loom.TaskResult, error) {
	return func(what string) (loom.TaskResult, error) {
		if err != nil {
			return remote.Failure(err)
		}
		if !out.OK() {
			message := fmt.Sprintf("%s exited with %d: %s", what, out.Code, reason(out.Stderr))
			return loom.TaskResult{Status: 1, Message: message, Stdout: out.Stdout, Stderr: out.Stderr, Retryable: automator.Final(out.Code)}, nil
		}
		return loom.TaskResult{Stdout: out.Stdout, Stderr: out.Stderr}, nil
	}
}

// reason is why a command of the engine failed: its last line but for that which only
// names the help.
func reason(stderr string) string {
	last := remote.LastLine(stderr)
	if strings.HasPrefix(last, "See '") {
		if before := remote.LastLine(stderr[:strings.LastIndex(stderr, last)]); before != "" {
			return before
		}
	}
	return last
}

// found is a container as the engine tells of it.
type found struct {
	ID     string `json:"Id"`
	Config struct {
		Labels map[string]string
	}
	HostConfig struct {
		PortBindings map[string][]struct{ HostPort string }
	}
}

// present looks for the container; nil says that there is none. A result that is no
// success, or an error, says that it cannot be known.
func (s *service) present(ctx context.Context) (*found, loom.TaskResult, error) {
	// In whole, since Podman understands formats differently from version to version.
	what := "docker inspect " + s.name
	out, err := s.conn.Exec(ctx, remote.Command{Text: "docker inspect --type container " + remote.Quote(s.name), Root: s.root, Tail: 1 << 20})
	if err == nil && !out.OK() && strings.Contains(strings.ToLower(out.Stderr), "no such container") {
		return nil, loom.TaskResult{}, nil
	}
	if r, err := s.ended(out, err)(what); err != nil || r.Status != 0 {
		return nil, r, err
	}
	var all []found
	if err := json.Unmarshal([]byte(out.Stdout), &all); err != nil || len(all) != 1 {
		return nil, loom.TaskResult{Status: 1, Message: fmt.Sprintf("%s tells of %d containers: %v", what, len(all), err)}, nil
	}
	return &all[0], loom.TaskResult{}, nil
}

// start makes the container, or starts the one that is there; one that was made
// from other fields gives way.
func (s *service) start(ctx context.Context) (loom.TaskResult, error) {
	wanted, err := s.container.sum()
	if err != nil {
		return loom.TaskResult{}, err
	}
	before, r, err := s.present(ctx)
	if err != nil || r.Status != 0 {
		return r, err
	}
	others := s.otherPorts(before)
	for _, p := range s.container.hostPorts() {
		if slices.Contains(others, p) {
			return refuse("port %d of the machine is taken by another service; publish another one", p), nil
		}
	}
	there := before != nil
	if there && before.Config.Labels[specLabel] != wanted {
		s.sink.Log("loom", s.name+" was made from other fields and is made again")
		if r, err := s.ended(s.run(ctx, "docker rm -f "+remote.Quote(s.name), "", true))("docker rm " + s.name); err != nil || r.Status != 0 {
			return r, err
		}
		there = false
	}
	text, stdin := "docker start "+remote.Quote(s.name), ""
	if !there {
		text, stdin = s.runCommand(wanted), strings.Join(append(s.container.Environment, ""), "\n")
	}
	s.sink.Log("loom", "starting "+s.name)
	if r, err := s.ended(s.run(ctx, text, stdin, true))("starting " + s.name); err != nil || r.Status != 0 {
		return r, err
	}
	now, r, err := s.present(ctx)
	if err != nil || r.Status != 0 {
		return r, err
	}
	if now == nil {
		return loom.TaskResult{Status: 1, Message: s.name + " was started and is not there"}, nil
	}
	ports := append(others, s.container.hostPorts()...)
	slices.Sort(ports)
	result := map[string]any{}
	if before != nil {
		for image, value := range s.spec.Results { // it had another image
			if record, ok := value.(map[string]any); ok && record["id"] == before.ID {
				result[image] = nil
			}
		}
	}
	result[s.container.Image] = map[string]any{"id": now.ID, portsKey: s.container.hostPorts()}
	result[portsKey] = slices.Compact(ports)
	return loom.TaskResult{Result: result}, nil
}

// runCommand is the text that makes the container. Variables come on standard
// input: a command line can be read by everybody on the machine.
func (s *service) runCommand(sum string) string {
	c := &s.container
	words := []string{"docker", "run", "-d", "--name", s.name, "--label", "loom-service=" + s.spec.Service.Name, "--label", specLabel + "=" + sum, "--restart", c.Restart}
	if len(c.Environment) > 0 {
		words = append(words, "--env-file", "/dev/stdin")
	}
	for _, link := range c.Links {
		// The name of a service on this machine stands for its container.
		if target, _, _ := strings.Cut(link, ":"); slices.Contains(s.spec.Services, target) {
			link = "loom-" + link
			if !strings.Contains(link, ":") {
				link += ":" + target
			}
		}
		words = append(words, "--link", link)
	}
	for _, v := range c.Volumes {
		words = append(words, "-v", v.Host+":"+v.Container)
	}
	for _, p := range c.Ports {
		words = append(words, "-p", strconv.Itoa(p.Host)+":"+p.Container)
	}
	words = append(words, c.Image)
	for i, w := range words {
		words[i] = remote.Quote(w)
	}
	return strings.TrimSpace(strings.Join(words, " ") + " " + c.Command)
}

// stop stops the container; one that is not there is stopped.
func (s *service) stop(ctx context.Context) (loom.TaskResult, error) {
	before, r, err := s.present(ctx)
	if err != nil || r.Status != 0 {
		return r, err
	}
	if before != nil {
		if r, err := s.ended(s.run(ctx, "docker stop "+remote.Quote(s.name), "", true))("docker stop " + s.name); err != nil || r.Status != 0 {
			return r, err
		}
	} else {
		s.sink.Log("loom", s.name+" is not there")
	}
	return loom.TaskResult{Result: map[string]any{portsKey: s.otherPorts(before)}}, nil
}

// remove takes the container away, with what it kept in volumes of its own.
func (s *service) remove(ctx context.Context) (loom.TaskResult, error) {
	before, r, err := s.present(ctx)
	if err != nil || r.Status != 0 {
		return r, err
	}
	if before != nil {
		if r, err := s.ended(s.run(ctx, "docker rm -f -v "+remote.Quote(s.name), "", true))("docker rm " + s.name); err != nil || r.Status != 0 {
			return r, err
		}
	}
	return loom.TaskResult{Result: map[string]any{s.container.Image: nil, portsKey: s.otherPorts(before)}}, nil
}

// otherPorts are the ports of the machine that other services have taken. Those of the
// container, if it is there, are its own: results know one container of an image.
func (s *service) otherPorts(c *found) []int {
	own := map[int]bool{}
	if c != nil {
		for _, bindings := range c.HostConfig.PortBindings {
			for _, b := range bindings {
				if p, err := strconv.Atoi(b.HostPort); err == nil {
					own[p] = true
				}
			}
		}
	}
	if recorded, ok := s.spec.Results[s.container.Image].(map[string]any); ok {
		for _, p := range numbers(recorded[portsKey]) {
			own[p] = true
		}
	}
	taken := map[int]bool{}
	for _, p := range numbers(s.spec.Results[portsKey]) {
		if !own[p] {
			taken[p] = true
		}
	}
	return slices.AppendSeq([]int{}, slices.Values(slices.Sorted(maps.Keys(taken))))
}

// numbers reads a list of numbers as results hold it.
func numbers(value any) []int {
	var out []int
	switch v := value.(type) {
	case []int:
		return v
	case []any:
		for _, item := range v {
			switch n := item.(type) {
			case float64:
				out = append(out, int(n))
			case int:
				out = append(out, n)
			case json.Number:
				if i, err := n.Int64(); err == nil {
					out = append(out, int(i))
				}
			}
		}
	}
	return out
}
