package loom

import (
	"fmt"
	"slices"
	"strconv"
)

// KeysFact is the fact of a node that names the public keys which its machine was seen
// to have: their fingerprints ("SHA256:…"), sorted. A task that has put them there
// records it; a node without the fact was last set up by a release that did not.
const KeysFact = "ssh_keys"

// Keys gives the fingerprints of KeysFact; known is false for a node without it.
func (n *Node) Keys() (fingerprints []string, known bool) {
	switch list := n.Results[KeysFact].(type) {
	case []string:
		return list, true
	case []any:
		for _, item := range list {
			if text, ok := item.(string); ok {
				fingerprints = append(fingerprints, text)
			}
		}
		return fingerprints, true
	}
	return nil, false
}

// HasKey reports whether one of the keys is known to be on the machine.
func (n *Node) HasKey(fingerprints ...string) bool {
	there, _ := n.Keys()
	return slices.ContainsFunc(fingerprints, func(f string) bool { return slices.Contains(there, f) })
}

// SignIn gives the user and the port with which Loom itself signs in to the machine.
func (n *Node) SignIn() (user string, port int) {
	user, port = n.SSHUser, 22
	if auth, ok := n.Results[authFact].(map[string]any); ok {
		if own, _ := auth["user"].(string); own != "" {
			user = own
		}
	}
	if user == "" {
		user = DefaultSSHUser
	}
	if own, err := strconv.ParseUint(fmt.Sprint(n.Results["ssh_port"]), 10, 16); err == nil && own > 0 {
		port = int(own)
	}
	return user, port
}
