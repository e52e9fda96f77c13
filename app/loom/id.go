package loom

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TenantID identifies a tenant: a UUID, or "superadmin" for the built-in one.
type TenantID string

// SuperTenant is the id and the name of the built-in tenant that owns plugin
// types and whose administrators are superadmins.
const SuperTenant TenantID = "superadmin"

// UserID identifies a user within a tenant.
type UserID string

// AdminUser is the reserved id of a tenant's built-in administrator.
const AdminUser UserID = "admin"

// NodeID identifies a node for ever: a random UUID.
type NodeID string

// ProcessID identifies one start of one process: "<shorthost>-<8 hex>".
type ProcessID string

// PreviewID identifies a stored preview: a random UUID.
type PreviewID string

// ClusterID is the number of a cluster; it is written with 8 digits.
type ClusterID int64

// OperationID is the row id of an operation, used in the database only. People
// and programs see an OperationRef.
type OperationID int64

// TaskID is the row id of a task, the argument of its River job. People and
// programs see a TaskRef.
type TaskID int64

// String gives the padded form "00000042".
func (id ClusterID) String() string { return fmt.Sprintf("%08d", int64(id)) }

// ParseClusterID reads a cluster id with or without padding; ok is false for
// anything that is not a positive number.
func ParseClusterID(s string) (id ClusterID, ok bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || strings.HasPrefix(s, "+") {
		return 0, false
	}
	return ClusterID(n), true
}

// OperationRef names an operation: the cluster and its running number, from 1.
type OperationRef struct {
	Cluster ClusterID
	Number  int
}

// String gives "00000042-003"; the number grows wider when it must.
func (r OperationRef) String() string { return fmt.Sprintf("%s-%03d", r.Cluster, r.Number) }

// TaskRef names a task: its operation and its running number there, from 1.
type TaskRef struct {
	Operation OperationRef
	Number    int
}

// String gives "00000042-003-012".
func (r TaskRef) String() string { return fmt.Sprintf("%s-%03d", r.Operation, r.Number) }

// ParseNumber reads a number as operations, tasks, attempts, lines and versions have them: what
// is greater than the database takes is none.
func ParseNumber(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int(n), err
}

// ParseOperationRef reads "00000042-003", padding optional.
func ParseOperationRef(s string) (OperationRef, bool) {
	cluster, number, found := strings.Cut(s, "-")
	id, ok := ParseClusterID(cluster)
	n, err := ParseNumber(number)
	if !found || !ok || err != nil || n <= 0 {
		return OperationRef{}, false
	}
	return OperationRef{Cluster: id, Number: n}, true
}

// ParseTaskRef reads "00000042-003-012", padding optional.
func ParseTaskRef(s string) (TaskRef, bool) {
	at := strings.LastIndexByte(s, '-')
	op, ok := ParseOperationRef(s[:max(at, 0)])
	n, err := ParseNumber(s[at+1:])
	if !ok || err != nil || n <= 0 {
		return TaskRef{}, false
	}
	return TaskRef{Operation: op, Number: n}, true
}

// MaxNameLength is the longest name of any entity, in characters.
const MaxNameLength = 255

var nameRule = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// CheckName returns a field error when name breaks the rule of
// names, else nil.
func CheckName(field, name string) []FieldError {
	switch {
	case name == "":
		return []FieldError{{field, "A name is required."}}
	case len(name) > MaxNameLength:
		return []FieldError{{field, fmt.Sprintf("A name has at most %d characters; this one has %d.", MaxNameLength, len(name))}}
	case !nameRule.MatchString(name):
		return []FieldError{{field, "Use letters without accents, digits, “_”, “-” and “.” only. This name has " + offender(name) + "."}}
	}
	return nil
}

// offender shows the first character of a name that breaks the name rule.
func offender(name string) string {
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if part := name[i : i+size]; !nameRule.MatchString(part) {
			switch {
			case r == utf8.RuneError && size == 1:
				return "a byte that is no character"
			case r == ' ':
				return "a space"
			case !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.IsMark(r):
				return fmt.Sprintf("the character %U", r)
			}
			return "“" + part + "”"
		}
		i += size
	}
	return "an empty part"
}

var dnsLabel = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)

// CheckDNSSuffix returns a field error when suffix is set and is no valid DNS
// suffix: at most 191 characters, labels of 1 to 63.
func CheckDNSSuffix(field, suffix string) []FieldError {
	if suffix == "" {
		return nil
	}
	bad := len(suffix) > 191
	for _, label := range strings.Split(suffix, ".") {
		bad = bad || len(label) > 63 || !dnsLabel.MatchString(label)
	}
	if bad {
		return []FieldError{{field, "A DNS suffix is labels of letters, digits and “-” joined by dots, such as “lab.example”."}}
	}
	return nil
}
