// Package mock is a provider that invents machines, for load and fault tests
// (plugins.md 2.10). Nothing is made and nothing is connected to; delays and
// failures follow from the node's id, the action and the attempt, so a run can be
// repeated. It must be registered on request only.
package mock

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
)

// defaultAddresses is a range set aside for documentation.
const defaultAddresses = "198.51.100.0/24"

// Provider is the mock; the zero value is ready to use and does not remember
// which machines it invented.
type Provider struct {
	invented *inventory
}

// New gives a mock provider that can list what it invented. It remembers that in
// memory only: with several provisioners each knows its own.
func New() Provider { return Provider{invented: &inventory{}} }

// Type describes the provider type.
func (Provider) Type() loom.PluginType {
	return loom.PluginType{
		Base: loom.Base{Name: "mock", Label: "Mock", Description: "Invents machines, for load and fault tests."},
		Parameters: map[string]loom.FieldGroup{
			"admin": {Fields: map[string]loom.FieldSchema{
				"delay_ms":     {Label: "Delay of each task in milliseconds", Type: "number", Default: 0, Override: true},
				"fail_percent": {Label: "Percentage of attempts that fail", Type: "number", Default: 0, Override: true},
				"fail_tasks":   {Label: "Tasks that always fail", Type: "text", Tip: "Comma-separated, such as “create,confirm”.", Override: true},
				"addresses":    {Label: "Range of addresses", Type: "text", Default: defaultAddresses, Override: true},
				"ssh_target":   {Label: "SSH server for all machines", Type: "text", Tip: "host:port of a test server.", Override: true},
			}, Required: [][]string{}},
			"user": {Fields: map[string]loom.FieldSchema{}, Required: [][]string{}},
		},
		ResourceTypes: map[string]loom.ResourceType{},
	}
}

// Create invents a machine.
func (p Provider) Create(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	id := "mock-" + string(spec.Node)
	if err := sink.Fact(map[string]any{"providerid": id}); err != nil {
		return loom.TaskResult{}, err
	}
	p.invented.add(loom.TaggedMachine{ID: id, Name: spec.Hostname, Node: spec.Node, Key: spec.IdempotencyKey,
		Cluster: spec.Ref.Operation.Cluster.String(), Tenant: spec.Tenant})
	result := act(ctx, spec, sink)
	user := spec.SSHUser
	if user == "" {
		user = loom.DefaultSSHUser
	}
	result.Result = map[string]any{"providerid": id, "ssh-auth": map[string]any{"user": user}}
	return result, nil
}

// Confirm gives the invented machine its address.
func (Provider) Confirm(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	address, port, err := place(spec)
	if err != nil {
		no := false
		return loom.TaskResult{Status: 1, Message: err.Error(), Retryable: &no}, nil
	}
	result := act(ctx, spec, sink)
	if result.Status == 0 {
		result.Addresses = map[string]string{loom.AccessV4: address, loom.BindV4: address}
		if port != 0 {
			result.Result = map[string]any{"ssh_port": port}
		}
	}
	return result, nil
}

// Delete forgets the invented machine.
func (p Provider) Delete(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	result := act(ctx, spec, sink)
	if result.Status == 0 {
		p.invented.remove("mock-" + string(spec.Node))
		result.Result = map[string]any{"providerid": nil, "ssh-auth": nil, "ssh_host_keys": nil, "ssh_port": nil}
	}
	return result, nil
}

// act waits and decides.
func act(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) loom.TaskResult {
	fields := spec.Provider.Fields
	timer := time.NewTimer(time.Duration(number(fields["delay_ms"])) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return loom.TaskResult{Status: 1, Message: context.Cause(ctx).Error()}
	}
	if list, _ := fields["fail_tasks"].(string); listed(list, string(spec.Action)) {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("%s fails, as fail_tasks asks for", spec.Action)}
	}
	if fails(spec, number(fields["fail_percent"])) {
		return loom.TaskResult{Status: 1, Message: fmt.Sprintf("%s fails, as fail_percent asks for", spec.Action)}
	}
	sink.Log("loom", fmt.Sprintf("mock: %s of node %d done", spec.Action, spec.NodeNumber))
	return loom.TaskResult{}
}

// place gives the address, and the port if it is a test server's.
func place(spec *loom.TaskSpec) (string, int, error) {
	if target, _ := spec.Provider.Fields["ssh_target"].(string); target != "" {
		host, port, err := net.SplitHostPort(target)
		portNumber, convErr := strconv.Atoi(port)
		if err != nil || convErr != nil || host == "" {
			return "", 0, fmt.Errorf("field ssh_target is %q; give host:port", target)
		}
		return host, portNumber, nil
	}
	text, _ := spec.Provider.Fields["addresses"].(string)
	if text == "" {
		text = defaultAddresses
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4() || prefix.Bits() > 30 {
		return "", 0, fmt.Errorf("field addresses is %q; give an IPv4 range of at least 4 addresses such as %s", text, defaultAddresses)
	}
	hosts := uint32(1)<<(32-prefix.Bits()) - 2
	base := prefix.Masked().Addr().As4()
	var address [4]byte
	binary.BigEndian.PutUint32(address[:], binary.BigEndian.Uint32(base[:])+1+hash(string(spec.Node))%hosts)
	return netip.AddrFrom4(address).String(), 0, nil
}

// fails decides whether an attempt fails, from node, action and attempt.
func fails(spec *loom.TaskSpec, percent int) bool {
	return int(hash(fmt.Sprintf("%s/%s/%d", spec.Node, spec.Action, spec.Attempt))%100) < percent
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	// Spread the low bits, which FNV mixes badly for texts that differ at the end.
	sum := h.Sum32()
	sum ^= sum >> 16
	sum *= 0x85ebca6b
	return sum ^ sum>>13
}

// listed reports whether a comma-separated list holds a word, whatever its case.
func listed(list, word string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), word) })
}

// number reads a field that may be a number or text; anything else is 0.
func number(value any) int {
	n, err := strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(value)), 64)
	if err != nil || n < 0 || n > 1e9 {
		return 0
	}
	return int(n)
}
