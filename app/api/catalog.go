package api

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"loom/app/api/wire"
	"loom/app/catalog"
	"loom/app/loom"
)

// entries are the handlers of one kind of the catalog: six of a tenant, two of
// plugin types.
type entries struct {
	*api
	kind loom.EntityKind
}

func (e entries) list(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	page, err := readPage(r, false)
	if err != nil {
		return err
	}
	deprecated, err := queryBool(r, "deprecated")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	found, err := e.Catalog.Entries(r.Context(), actor, e.kind, catalog.ListInput{Page: page, Q: q.Get("q"), Deprecated: deprecated,
		FacetChoice: catalog.FacetChoice{Label: q.Get("label"), Provider: q.Get("provider"), Automator: q.Get("automator"), Findings: q.Get("findings"), Use: q.Get("use")}})
	if err != nil {
		return err
	}
	linkPages(w, r, found.Next, found.Prev)
	out := make([]any, len(found.Items))
	for i, item := range found.Items {
		out[i] = wire.NewEntry(item.Entry)
	}
	return answer(w, r, out)
}

func (e entries) show(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return e.answerVersion(w, r, actor, 0)
}

func (e entries) showVersion(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	version, err := versionOf(r, "version")
	if err != nil {
		return err
	}
	return e.answerVersion(w, r, actor, version)
}

func (e entries) answerVersion(w http.ResponseWriter, r *http.Request, actor loom.Actor, version int) error {
	entry, info, err := e.Catalog.Entry(r.Context(), actor, e.kind, r.PathValue("name"), version)
	if err != nil {
		return err
	}
	return answerTagged(w, r, wire.NewEntry(entry), `"`+strconv.Itoa(info.Version)+`"`)
}

func (e entries) versions(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	infos, err := e.Catalog.Versions(r.Context(), actor, e.kind, r.PathValue("name"))
	if err != nil {
		return err
	}
	shown := func(v loom.VersionInfo) wire.VersionInfo { return wire.NewVersions([]loom.VersionInfo{v})[0] }
	return answerList(w, r, true, infos, shown, order[loom.VersionInfo]{"-version", func(v loom.VersionInfo) string { return byNumber(v.Version) }})
}

func (e entries) releaseVersion(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return e.setReleased(w, r, actor, true)
}

func (e entries) withdrawVersion(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return e.setReleased(w, r, actor, false)
}

func (e entries) setReleased(w http.ResponseWriter, r *http.Request, actor loom.Actor, released bool) error {
	version, err := versionOf(r, "v")
	if err != nil {
		return err
	}
	if err := e.Catalog.ReleaseVersion(r.Context(), actor, e.kind, r.PathValue("name"), version, released); err != nil {
		return err
	}
	return done(w)
}

func (e entries) deprecateVersion(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	version, err := versionOf(r, "v")
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	message, err := wire.ReadDeprecation(body)
	if err != nil {
		return err
	}
	if err := e.Catalog.DeprecateVersion(r.Context(), actor, e.kind, r.PathValue("name"), version, message); err != nil {
		return err
	}
	return done(w)
}

// unreleased reports whether a request saves a version without releasing it.
func unreleased(r *http.Request) (bool, error) {
	release, err := queryBool(r, "release")
	return release != nil && !*release, err
}

func (e entries) create(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	unreleased, err := unreleased(r)
	if err != nil {
		return err
	}
	saved, found, err := e.Catalog.Create(r.Context(), actor, e.kind, body, unreleased)
	if err != nil {
		return err
	}
	tellFindings(w, e.kind, saved.Meta().Name, found)
	return done(w)
}

func (e entries) put(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	entry, err := e.read(w, r)
	if err != nil {
		return err
	}
	if name := r.PathValue("name"); entry.Meta().Name != name {
		return loom.InvalidFields([]loom.FieldError{{Field: "name", Message: "The name in the body, “" + entry.Meta().Name + "”, is not the one in the path, “" + name + "”."}})
	}
	expected, there, err := ifMatch(r)
	if err != nil {
		return err
	}
	unreleased, err := unreleased(r)
	if err != nil {
		return err
	}
	saved, found, err := e.Catalog.Save(r.Context(), actor, e.kind, catalog.SaveInput{Entry: entry, Expected: expected, OnlyThere: there, Unreleased: unreleased})
	if err != nil {
		return err
	}
	if given, ok := entry.(*loom.PluginType); ok && !reflect.DeepEqual(given.Parameters, saved.(*loom.PluginType).Parameters) {
		e.Log.InfoContext(r.Context(), "A plugin of this installation has this type: its fields stay, others were added to it.", "kind", e.kind, "name", given.Name, "user", actor.User)
	}
	tellFindings(w, e.kind, saved.Meta().Name, found)
	return done(w)
}

func (e entries) read(w http.ResponseWriter, r *http.Request) (loom.Entry, error) {
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	return catalog.Decode(e.kind, body)
}

// ifMatch reads the version that an author started from, nil when he names none;
// there is set for "*": any version that exists.
func ifMatch(r *http.Request) (version *int, there bool, err error) {
	text := strings.TrimSpace(r.Header.Get("If-Match"))
	switch text {
	case "":
		return nil, false, nil
	case "*":
		return nil, true, nil
	}
	number, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), 10, 32)
	if err != nil || number < 0 {
		return nil, false, loom.InvalidFields([]loom.FieldError{{Field: "If-Match", Message: "If-Match holds the version that you started from, in quotes, as the ETag of GET gives it."}})
	}
	started := int(number)
	return &started, false, nil
}

func (e entries) remove(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	return e.removeVersions(w, r, actor, 0)
}

func (e entries) removeVersion(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	version, err := versionOf(r, "version")
	if err != nil {
		return err
	}
	return e.removeVersions(w, r, actor, version)
}

// removeVersions says in the header how many other entries name what is gone now.
func (e entries) removeVersions(w http.ResponseWriter, r *http.Request, actor loom.Actor, version int) error {
	dangling, err := e.Catalog.DeleteTelling(r.Context(), actor, e.kind, r.PathValue("name"), version)
	if err != nil {
		return err
	}
	linkFindings(w, dangling, "")
	return done(w)
}

// versionOf reads a version from the path.
func versionOf(r *http.Request, name string) (int, error) {
	version, err := strconv.ParseInt(r.PathValue(name), 10, 32)
	if err != nil || version <= 0 {
		return 0, loom.InvalidFields([]loom.FieldError{{Field: name, Message: "A version is a whole number above 0."}})
	}
	return int(version), nil
}
