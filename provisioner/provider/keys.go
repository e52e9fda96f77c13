package provider

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// Keyed is an Unconnected provider, which does itself what Loom signs in for to all other
// machines.
type Keyed interface {
	// Keys puts the keys of spec on the machine.
	Keys(ctx context.Context, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error)
}

// PutKeys carries out KEYS over a connection to the machine: the public keys that Loom
// keeps there become the cluster's own and spec.OwnerKeys. Others, which somebody put
// there by hand, stay. It may be repeated, and does nothing else to the machine.
func PutKeys(ctx context.Context, conn *remote.Conn, spec *loom.TaskSpec, sink loom.Sink) (loom.TaskResult, error) {
	keys := publicKeys(spec, sink)
	message, err := runScript(ctx, conn, remote.Command{
		Text: failScript + keysScript, Root: true, Env: map[string]string{"LOOM_SET_USER": conn.User()},
	}, &keys, sink)
	if err != nil {
		return remote.Failure(err)
	}
	if message != "" {
		return loom.TaskResult{Status: 1, Message: message}, nil
	}
	sink.Log("loom", fmt.Sprintf("%s on the machine for user %s", count(len(keys.fingerprints)), conn.User()))
	return loom.TaskResult{Result: map[string]any{loom.KeysFact: keys.fingerprints}}, nil
}

func count(keys int) string {
	if keys == 1 {
		return "1 public key is"
	}
	return fmt.Sprintf("%d public keys are", keys)
}

// keySet is the public keys for a machine.
type keySet struct {
	// lines are one clean authorized_keys line per key, without options.
	lines string
	// fingerprints are sorted.
	fingerprints []string
}

// Watched is an Unconnected provider that looks at its machines itself.
type Watched interface {
	// Look reports whether the machine of a node answers, and which services fail there. It
	// must change nothing.
	Look(ctx context.Context, spec *loom.TaskSpec) (answers bool, failing []string, err error)
}

// Invented adds to the result of a KEYS or CONFIRM of an Unconnected provider what others
// record of the keys of a spec.
func Invented(spec *loom.TaskSpec, result *loom.TaskResult, sink loom.Sink) {
	result.Result = maps.Clone(result.Result)
	if result.Result == nil {
		result.Result = map[string]any{}
	}
	result.Result[loom.KeysFact] = publicKeys(spec, sink).fingerprints
}

// publicKeys are the cluster's own key and those of people. What does not parse is left
// out with a line in the log: a bad key of a user must not keep a cluster from coming up.
func publicKeys(spec *loom.TaskSpec, sink loom.Sink) keySet {
	set := keySet{fingerprints: []string{}}
	var lines strings.Builder
	for i, line := range append([]string{spec.PublicKey}, spec.OwnerKeys...) {
		if line == "" {
			continue
		}
		key, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			sink.Log("loom", fmt.Sprintf("warning: public key %d is not in authorized_keys form and was left out", i))
			continue
		}
		if slices.Contains(set.fingerprints, ssh.FingerprintSHA256(key)) {
			continue
		}
		set.fingerprints = append(set.fingerprints, ssh.FingerprintSHA256(key))
		text := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
		if comment = strings.Join(strings.Fields(comment), " "); comment != "" {
			text += " " + comment
		}
		lines.WriteString(text + "\n")
	}
	slices.Sort(set.fingerprints)
	set.lines = lines.String()
	return set
}

// keptWithOptions begins what keys.sh says of a key that somebody put into the file with
// options, such as a command: it may open no session.
const keptWithOptions = "kept with its options: "

// forget takes a key off those that are on the machine.
func (s *keySet) forget(blob string, sink loom.Sink) {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(blob))
	if err != nil {
		return
	}
	key, err := ssh.ParsePublicKey(data)
	if err != nil {
		return
	}
	f := ssh.FingerprintSHA256(key)
	sink.Log("loom", "warning: somebody gave the key "+f+" options on this machine; they stay, so it may open no session")
	s.fingerprints = slices.DeleteFunc(s.fingerprints, func(other string) bool { return other == f })
}
