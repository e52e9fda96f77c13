// Package route builds the URLs of Loom's pages, so that templates, redirects
// and tests never spell one out. It must not know handlers: which pattern serves
// a URL is decided in the routes file of the web surface.
//
// Every variable part is escaped here; callers
// pass names as they are. Catalog keys are names, clusters go by padded id,
// operations and tasks by their numbers.
package route

import (
	"net/url"
	"strconv"
	"strings"

	"loom/app/loom"
)

// join makes a path from segments, each escaped. "." and ".." are allowed by
// the rule for names and would be resolved away by browsers even percent-encoded,
// so a name of only dots gets a suffix that Segment takes off again.
func join(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		if s == "." || s == ".." {
			s += "~"
		}
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// Segment gives the name that a path segment, already unescaped, stands for.
func Segment(s string) string {
	if s == ".~" || s == "..~" {
		return strings.TrimSuffix(s, "~")
	}
	return s
}

// Query adds key and value pairs to a URL, leaving out those with an empty
// value. It panics on an odd number of arguments.
func Query(base string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Add(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return base
	}
	separator := "?"
	if strings.Contains(base, "?") {
		separator = "&"
	}
	return base + separator + values.Encode()
}

// JSON is the raw JSON view of a page's object.
func JSON(page string) string { return Query(page, "as", "json") }

// maxNext is how long a path may be at which one goes on, in bytes: it is repeated in
// answers to whoever asks.
const maxNext = 2 << 10

// Local gives next when it is a path on this server and not too long, else fallback. It
// keeps a sign-in link from sending people elsewhere.
func Local(next, fallback string) string {
	if len(next) > maxNext {
		return fallback
	}
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return fallback
	}
	return next
}

// Home is the start page.
func Home() string { return "/" }

// API is the readable page of the REST API.
func API() string { return "/docs/api" }

// APIChapter is the page of a chapter of the REST API.
func APIChapter(name string) string { return join("docs", "api", name) }

// Login is the sign-in page; next, a local path, is where to go afterwards.
func Login(next string) string { return Query("/login", "next", Local(next, "")) }

// LoginAt leads to the page of an identity provider where people sign in: next, a local path, is
// where to go afterwards, tenant the tenant to sign in to, "" for whichever it is.
func LoginAt(provider, next, tenant string) string {
	return Query(join("login", provider), "next", Local(next, ""), "tenant", tenant)
}

// AccountSignIn shows what identity providers say of the user (GET) and connects one (POST).
func AccountSignIn() string { return "/account/sign-in" }

// AccountDisconnect disconnects an identity provider (POST).
func AccountDisconnect() string { return "/account/sign-in/disconnect" }

// AdminIdentity lists the identity providers of the tenant (GET) and makes one (POST).
func AdminIdentity() string { return "/admin/identity" }

// AdminIdentityNew is the form for a new identity provider.
func AdminIdentityNew() string { return "/admin/identity/new" }

// AdminIdentityProvider is the page of an identity provider (GET) and where its form is saved (POST).
func AdminIdentityProvider(id string) string { return join("admin", "identity", id) }

// AdminIdentityVerb is an action on an identity provider: "check", "delete", "rules", "rules/preview", "rules/apply".
func AdminIdentityVerb(id string, verb ...string) string {
	return join(append([]string{"admin", "identity", id}, verb...)...)
}

// Logout ends the session (POST).
func Logout() string { return "/logout" }

// CSPReports receives the browser's reports of policy violations (POST).
func CSPReports() string { return "/csp-reports" }

// Account is the page of the signed-in user.
func Account() string { return "/account" }

// AccountKeys adds and removes the user's SSH public keys (POST).
func AccountKeys() string { return "/account/keys" }

// AccountPassword is the page for a new password; next, a local path, is where to go
// afterwards.
func AccountPassword(next string) string { return Query("/account/password", "next", next) }

// AccountPreferences receives theme and density (POST).
func AccountPreferences() string { return "/account/preferences" }

// AccountTokens lists the user's API tokens (GET) and makes one (POST).
func AccountTokens() string { return "/account/tokens" }

// AccountToken is an action on one of the user's tokens, such as "revoke".
func AccountToken(id int64, verb string) string {
	return join("account", "tokens", strconv.FormatInt(id, 10), verb)
}

// AccountSessions lists where the user is signed in.
func AccountSessions() string { return "/account/sessions" }

// Catalog is the gallery of templates for users.
func Catalog() string { return "/catalog" }

// EntryIcon is the picture that a version of an entry brings as its icon.
func EntryIcon(kind, name, version string) string { return join("icons", kind, name, version) }

// Services lists the services for users.
func Services() string { return "/services" }

// CatalogTemplate is a template as users see it.
func CatalogTemplate(name string) string { return join("catalog", name) }

// CatalogService is a service as users see it.
func CatalogService(name string) string { return join("catalog", "services", name) }

// Events is the event stream for the given topics; with none
// it is the empty text, which means "no stream".
func Events(topics ...string) string {
	if len(topics) == 0 {
		return ""
	}
	return Query("/events", "topics", strings.Join(topics, ","))
}

// System is the overview for superadmins.
func System() string { return "/system" }

// Admin is the overview for tenant administrators.
func Admin() string { return "/admin" }

// AdminFix shows what a fix of findings changes (GET) and applies it (POST).
func AdminFix() string { return "/admin/fix" }

// AdminUsers lists the users of the tenant.
func AdminUsers() string { return "/admin/users" }

// AdminResources lists the plugin resources of the tenant.
func AdminResources() string { return "/admin/resources" }

// adminSegments are the kinds' segments in addresses of pages.
var adminSegments = map[loom.EntityKind]string{
	loom.KindProvider:        "providers",
	loom.KindHardwareType:    "hardware-types",
	loom.KindImageType:       "image-types",
	loom.KindService:         "services",
	loom.KindTemplate:        "templates",
	loom.KindPartialTemplate: "partials",
	loom.KindProviderType:    "provider-types",
	loom.KindAutomatorType:   "automator-types",
}

// AdminSegment is the path segment of a kind: "hardware-types". A kind outside
// the closed set gives its own text.
func AdminSegment(kind loom.EntityKind) string {
	if s, ok := adminSegments[kind]; ok {
		return s
	}
	return string(kind)
}

// AdminKind lists the entries of a kind (GET) and makes one (POST).
func AdminKind(kind loom.EntityKind) string { return join("admin", AdminSegment(kind)) }

// AdminBulk is an action on several entries of a kind: "export", "label", "provider",
// "deprecate" or "delete" (GET shows it, POST does it).
func AdminBulk(kind loom.EntityKind, verb string) string {
	return join("admin", "bulk", AdminSegment(kind), verb)
}

// AdminNew is the form for a new entry of a kind.
func AdminNew(kind loom.EntityKind) string { return join("admin", AdminSegment(kind), "new") }

// AdminEntry is an entry's page (GET) and where its form is saved (POST).
func AdminEntry(kind loom.EntityKind, name string) string {
	return join("admin", AdminSegment(kind), name)
}

// AdminEntryEdit is the edit form of an entry.
func AdminEntryEdit(kind loom.EntityKind, name string) string {
	return join("admin", AdminSegment(kind), name, "edit")
}

// AdminEntryDelete is the confirmation (GET) and the deletion (POST) of an entry.
func AdminEntryDelete(kind loom.EntityKind, name string) string {
	return join("admin", AdminSegment(kind), name, "delete")
}

// AdminEntryVersions lists the stored versions of an entry.
func AdminEntryVersions(kind loom.EntityKind, name string) string {
	return join("admin", AdminSegment(kind), name, "versions")
}

// AdminEntryVersion shows one stored version of an entry.
func AdminEntryVersion(kind loom.EntityKind, name string, version int) string {
	return join("admin", AdminSegment(kind), name, "versions", strconv.Itoa(version))
}

// AdminValidate checks a draft of an entry while it is edited (POST, fragment).
func AdminValidate(kind loom.EntityKind) string { return join("validate", AdminSegment(kind)) }
