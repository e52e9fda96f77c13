// Package simcloud is a cloud that does not exist: it keeps the books of the
// machines that the mock provider asks for and of what the mock automator does
// to them, and says what must never be: two machines of one key, two tasks at
// work on one machine.
//
// The books live where a killed provisioner cannot take them along: in memory of
// another process, which serves them over HTTP, or in a file that every process
// of an installation shares. It decides nothing about failures, those are the
// plugins', and must be reached from nowhere but tests and load tests.
package simcloud

import (
	"context"
	"time"

	"loom/app/loom"
)

// Machine is a machine of the cloud.
type Machine struct {
	ID      string        `json:"id"`
	Name    string        `json:"name,omitempty"`
	Key     string        `json:"key,omitempty"`
	Node    loom.NodeID   `json:"node,omitempty"`
	Cluster string        `json:"cluster,omitempty"`
	Tenant  loom.TenantID `json:"tenant,omitempty"`
	Flavor  string        `json:"flavor,omitempty"`
	Image   string        `json:"image,omitempty"`
	// Address is where it answers.
	Address string `json:"address,omitempty"`
	// State is what lists say of it.
	State loom.MachineState `json:"state,omitempty"`
	Made  time.Time         `json:"made"`
	// Gone is when it ceases to be, zero while nobody asked for that.
	Gone time.Time `json:"gone,omitzero"`
}

// Lives reports whether the machine is there at a time.
func (m *Machine) Lives(now time.Time) bool { return m.Gone.IsZero() || m.Gone.After(now) }

// Want asks for a machine.
type Want struct {
	Machine
	// Token makes the cloud itself give the machine of the same key again, as some
	// do. Without it another one is made, as others do.
	Token bool `json:"token,omitempty"`
}

// Query picks machines.
type Query struct {
	ID  string `json:"id,omitempty"`
	Key string `json:"key,omitempty"`
	// Lag leaves out machines that are younger: a list that is not up to date.
	Lag time.Duration `json:"lag,omitempty"`
}

// Look asks how a machine is, by the id or the key that it has.
type Look struct {
	ID  string `json:"id,omitempty"`
	Key string `json:"key,omitempty"`
	// Process is the process id of who looks.
	Process int `json:"process"`
}

// Sight is what is seen of a machine.
type Sight struct {
	Answers bool `json:"answers,omitempty"`
	// Failing are the services that do not work there.
	Failing []string `json:"failing,omitempty"`
}

// Effect is one attempt of one task at work on a machine.
type Effect struct {
	// Task as people see it, such as 00000012-001-034.
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	// Key is that of the machine: another one for each that a node ever has.
	Key     string          `json:"key"`
	Node    loom.NodeID     `json:"node"`
	Service string          `json:"service,omitempty"`
	Action  loom.TaskAction `json:"action"`
	// Release is what an install puts there: the field “release” of the action.
	Release string `json:"release,omitempty"`
	// Process is the process id of who is at work.
	Process int `json:"process"`
}

// Software is a service on a machine, as what was done there left it.
type Software struct {
	Release string
	Running bool
}

// Cloud is what the plugins ask. Errors are trouble on the way to it.
type Cloud interface {
	// Create makes a machine, or gives that of the same key where Token asks so.
	Create(ctx context.Context, w Want) (Machine, error)
	// Find returns the machines that are there, oldest first.
	Find(ctx context.Context, q Query) ([]Machine, error)
	// Delete makes a machine cease to be after linger; false says that it is not
	// there.
	Delete(ctx context.Context, id string, linger time.Duration) (bool, error)
	// Look looks at a machine.
	Look(ctx context.Context, look Look) (Sight, error)
	// Begin notes that an attempt is at work.
	Begin(ctx context.Context, e Effect) error
	// End notes that it is no longer; done says that it did all it had to.
	End(ctx context.Context, e Effect, done bool) error
}

// cloudKey is the key of the cloud in a provider's fields.
const cloudKey = "simulator"

// Of returns the cloud that the field “simulator” of a mock provider names, else
// the one given, which may be nil.
func Of(p loom.Provider, otherwise Cloud) Cloud {
	if p.Type == "mock" {
		if url, _ := p.Fields[cloudKey].(string); url != "" {
			return Dial(url)
		}
	}
	return otherwise
}

// EffectOf is what an attempt does, as the books name it.
func EffectOf(spec *loom.TaskSpec, process int) Effect {
	e := Effect{Task: spec.Ref.String(), Attempt: spec.Attempt, Key: spec.IdempotencyKey, Node: spec.Node, Action: spec.Action, Process: process}
	if spec.Service != nil {
		e.Service, e.Release = spec.Service.Name, spec.Service.Action.Fields["release"]
	}
	return e
}
