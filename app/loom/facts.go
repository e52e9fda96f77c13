package loom

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// authFact is the result that says how to sign in to a machine. All of it is
// secret but for the members below.
const authFact = "ssh-auth"

// FieldSSHPassword is the field of a provider with the password of all its machines. It is
// sent wherever Loom signs in to a node, and is never among a node's facts.
const FieldSSHPassword = "ssh_password"

// The fields under which the key pair that Loom makes for a cluster is sealed. A
// provider's own private key has the same name.
const (
	FieldPrivateKey = "ssh_keyfile"
	FieldPublicKey  = "ssh_public_key"
)

// openAuth are the members of ssh-auth that anybody who sees the node may see.
var openAuth = map[string]bool{"user": true, "identityfile": true, "port": true}

// PlaceFact is the result that keeps where a machine was made: the fields of its
// provider whose role is RolePlace.
const PlaceFact = "place"

// Placed gives where the machine of a node with these facts was made, or was last to be
// made; empty where nothing is known.
func Placed(facts map[string]any) map[string]any {
	place, _ := facts[PlaceFact].(map[string]any)
	return place
}

// AtPlace is a copy of a provider with the fields of a place in front of its own.
func (p Provider) AtPlace(place map[string]any) Provider {
	fields := make(map[string]any, len(p.Fields)+len(place))
	maps.Copy(fields, p.Fields)
	maps.Copy(fields, place)
	p.Fields = fields
	return p
}

// SplitFacts divides results of a task into what may be stored and shown as it
// is, and the secrets among them: the sign-in of a machine, and values at any
// depth whose key looks secret. Both have the results' own keys on top; a null
// stays open. JoinFacts undoes it.
func SplitFacts(results map[string]any) (open, hidden map[string]any) {
	open, hidden = make(map[string]any, len(results)), map[string]any{}
	for name, value := range results {
		o, h := splitFact(name, value, name == authFact)
		if o != nil || value == nil {
			open[name] = o
		}
		if h != nil {
			hidden[name] = h
		}
	}
	return open, hidden
}

func splitFact(name string, value any, auth bool) (open, hidden any) {
	switch {
	case value == nil || value == "":
		return value, nil
	case LooksSecret(name):
		return nil, value
	}
	if texts, ok := value.(map[string]string); ok { // plugins of this binary give these
		members := make(map[string]any, len(texts))
		for key, text := range texts {
			members[key] = text
		}
		value = members
	}
	members, ok := value.(map[string]any)
	switch {
	case !ok && auth:
		return nil, value // of a form that nobody knows
	case !ok:
		return splitList(value)
	}
	openMembers, hiddenMembers := make(map[string]any, len(members)), map[string]any{}
	for key, inner := range members {
		if auth && !openAuth[key] && inner != nil && inner != "" {
			hiddenMembers[key] = inner
			continue
		}
		o, h := splitFact(key, inner, false)
		if o != nil || inner == nil {
			openMembers[key] = o
		}
		if h != nil {
			hiddenMembers[key] = h
		}
	}
	if len(hiddenMembers) == 0 {
		return openMembers, nil
	}
	return openMembers, hiddenMembers
}

// splitList hides a list as a whole when something in it is secret: what is left
// of it would have lost its places.
func splitList(value any) (open, hidden any) {
	list, ok := value.([]any)
	if !ok {
		return value, nil
	}
	for _, item := range list {
		if _, h := splitFact("", item, false); h != nil {
			return nil, value
		}
	}
	return value, nil
}

// JoinFacts lays hidden results over open ones, member by member. It copies; what
// it is given stays as it is.
func JoinFacts(open, hidden map[string]any) map[string]any {
	out := maps.Clone(open)
	if out == nil {
		out = make(map[string]any, len(hidden))
	}
	for name, h := range hidden {
		below, isMap := h.(map[string]any)
		above, both := out[name].(map[string]any)
		if isMap && both {
			out[name] = JoinFacts(above, below)
			continue
		}
		out[name] = h
	}
	return out
}

// RevealFact returns a result that was sealed as JSON, under its name; see JoinFacts.
func RevealFact(name string, plain Secret) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(plain.Reveal()))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return nil, fmt.Errorf("the sealed result %s is not JSON", name) // the cause would quote it
	}
	return map[string]any{name: value}, nil
}

// TextsIn returns every text of a JSON value, and every number as one.
func TextsIn(value any) (texts []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case json.Number:
		return []string{v.String()}
	case map[string]any:
		for _, inner := range v {
			texts = append(texts, TextsIn(inner)...)
		}
	case []any:
		for _, inner := range v {
			texts = append(texts, TextsIn(inner)...)
		}
	}
	return texts
}
