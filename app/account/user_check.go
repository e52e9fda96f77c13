package account

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"loom/app/loom"
)

// Limits of a user's texts, in characters.
const maxUserText = 200

// checkUser checks shape and puts the SSH keys into their plain form.
func checkUser(u *loom.User) []loom.FieldError {
	var errs []loom.FieldError
	id := string(u.ID)
	switch {
	case strings.TrimSpace(id) == "" || strings.TrimSpace(id) != id:
		errs = append(errs, loom.FieldError{Field: "id", Message: "A user id is a text without blanks at its ends."})
	case utf8.RuneCountInString(id) > loom.MaxNameLength:
		errs = append(errs, loom.FieldError{Field: "id", Message: "A user id has at most 255 characters."})
	case strings.ContainsAny(id, `/\`) || strings.ContainsFunc(id, unicode.IsControl):
		errs = append(errs, loom.FieldError{Field: "id", Message: "A user id holds no slashes and no control characters."})
	case id == "." || id == "..":
		errs = append(errs, loom.FieldError{Field: "id", Message: "A user id of dots alone cannot be part of a path."})
	}
	if len([]rune(u.DisplayName)) > maxUserText || strings.ContainsFunc(u.DisplayName, unicode.IsControl) {
		errs = append(errs, loom.FieldError{Field: "displayName", Message: "A name has at most 200 characters, none of them a control character."})
	}
	if u.Email != "" {
		if address, err := mail.ParseAddress(u.Email); err != nil || address.Address != u.Email || len(u.Email) > maxUserText {
			errs = append(errs, loom.FieldError{Field: "email", Message: "This is not an email address."})
		}
	}
	keys, keyErrs := cleanSSHKeys(u.SSHKeys)
	u.SSHKeys = keys
	return append(errs, keyErrs...)
}

// checkNewID finds what keeps an id, which checkUser takes, from being that of a new user:
// it looks like another one. Users who are there already keep theirs.
func checkNewID(id loom.UserID) []loom.FieldError {
	switch {
	case strings.EqualFold(string(id), "system"):
		return []loom.FieldError{{Field: "id", Message: "This id is reserved for Loom. Choose another one."}}
	case strings.ContainsFunc(string(id), func(r rune) bool { return unicode.Is(unicode.Cf, r) }):
		return []loom.FieldError{{Field: "id", Message: "A user id holds no invisible characters; enter it again by hand."}}
	}
	return nil
}

func checkRole(role loom.Role) []loom.FieldError {
	if slices.Contains(loom.StoredRoles, role) {
		return nil
	}
	return []loom.FieldError{{Field: "role", Message: "The role is “user”, “admin” or “none”."}}
}

// demotes reports whether a role would take from the built-in administrator what he is.
func demotes(id loom.UserID, role loom.Role) bool {
	return id == loom.AdminUser && slices.Contains(loom.StoredRoles, role) && !role.May(loom.Administer)
}

// checkNewRole is checkRole of a user to be made: the reserved id is that of an
// administrator.
func checkNewRole(id loom.UserID, role loom.Role) []loom.FieldError {
	if demotes(id, role) {
		return []loom.FieldError{{Field: "role", Message: "The id “admin” is that of the built-in administrator; its role is “admin”."}}
	}
	return checkRole(role)
}

const (
	// maxSSHKeys is how many public keys a user may have, maxSSHKey the characters of one.
	maxSSHKeys = 50
	maxSSHKey  = 8192
)

// cleanSSHKeys keeps type, key and comment of each public key. Options are
// refused: on a machine they would decide what its other users may do.
func cleanSSHKeys(keys []string) ([]string, []loom.FieldError) {
	clean := []string{}
	var errs []loom.FieldError
	if len(keys) > maxSSHKeys {
		return nil, []loom.FieldError{{Field: "sshKeys", Message: fmt.Sprintf("Enter at most %d keys. Remove unused ones.", maxSSHKeys)}}
	}
	for i, text := range keys {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		at := "sshKeys[" + itoa(i) + "]"
		if len(text) > maxSSHKey {
			errs = append(errs, loom.FieldError{Field: at, Message: fmt.Sprintf("A key has at most %d characters.", maxSSHKey)})
			continue
		}
		key, comment, options, rest, err := ssh.ParseAuthorizedKey([]byte(text))
		switch {
		case err != nil && strings.Contains(text, "PRIVATE KEY"):
			errs = append(errs, loom.FieldError{Field: at, Message: "This is a private key. Never give it away; paste the public one, from the file ending in .pub."})
		case err != nil:
			errs = append(errs, loom.FieldError{Field: at, Message: "This is not an SSH public key. Paste one line such as “ssh-ed25519 AAAA… you@host”."})
		case len(strings.TrimSpace(string(rest))) > 0:
			errs = append(errs, loom.FieldError{Field: at, Message: "Enter one public key per line."})
		case len(options) > 0:
			errs = append(errs, loom.FieldError{Field: at, Message: "Options before the key are not allowed. Remove them."})
		default:
			line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
			if comment = strings.TrimSpace(comment); comment != "" {
				line += " " + comment
			}
			clean = append(clean, line)
		}
	}
	return clean, errs
}

// changeSSHKeys returns keys without the one of a fingerprint, and with those added that are not
// there yet. What goes leaves an empty line, so that an error names the line that was entered.
func changeSSHKeys(keys, add []string, remove string) []string {
	fingerprint := func(line string) string {
		key, ok := SSHKeyOf(line)
		if !ok {
			return line // cleanSSHKeys says what is wrong
		}
		return key.Fingerprint
	}
	var out []string
	seen := map[string]bool{remove: remove != ""}
	for _, line := range slices.Concat(keys, add) {
		f := fingerprint(line)
		if seen[f] {
			line = ""
		}
		out, seen[f] = append(out, line), true
	}
	return out
}

// SSHKey is a public key as lists show it: its kind, its fingerprint and what it is called.
type SSHKey struct{ Kind, Fingerprint, Comment string }

// SSHKeyOf reads a key in the form of authorized_keys; false for what is none.
func SSHKeyOf(line string) (SSHKey, bool) {
	key, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return SSHKey{}, false
	}
	return SSHKey{key.Type(), ssh.FingerprintSHA256(key), comment}, true
}
