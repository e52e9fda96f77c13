// Package layout is the frame around every page: head, header with the areas,
// rail, breadcrumbs, banners, toasts, footer; and the bare frame of sign-in and
// error pages. It must not know sessions or use cases: the model is flat and
// permissions are booleans in it.
//
// Handlers answer the whole page, or with HX-Request set only its <main>:
//
//	layout.Wrap(model, clusterview.ListPage(m))     // whole page
//	layout.Fragment(model, clusterview.ListPage(m)) // title and <main>
package layout

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/views/route"
	"loom/views/ui"
)

// Theme is the colour scheme a person chose; it is kept in a cookie.
type Theme string

// The themes. An unknown one counts as ThemeSystem.
const (
	ThemeSystem Theme = "system"
	ThemeLight  Theme = "light"
	ThemeDark   Theme = "dark"
)

// ThemeCookie is the name of the cookie that keeps the theme.
const ThemeCookie = "loom-theme"

// ZoneCookie is the name of the cookie in which loom.js keeps the time zone of the browser.
const ZoneCookie = "loom-zone"

// ParseTheme reads a theme; anything unknown is ThemeSystem.
func ParseTheme(s string) Theme {
	switch t := Theme(s); t {
	case ThemeLight, ThemeDark:
		return t
	}
	return ThemeSystem
}

// Area is a part of Loom with its own rail.
type Area string

// The areas. AreaAccount has no link in the area switch; the user menu leads there.
const (
	AreaClusters Area = "clusters"
	AreaAdmin    Area = "admin"
	AreaSystem   Area = "system"
	AreaAccount  Area = "account"
)

// Model is what the frame shows.
type Model struct {
	// Title is the object, Section where it stands: "hadoop-dev", "Clusters".
	Title, Section string
	// TitlePrefix goes first, such as "(49/81)" while an operation runs.
	TitlePrefix string
	Theme       Theme
	// Path is the present page with its query; the theme form returns there.
	Path string

	// Compact makes rows of tables lower; NoShortcuts turns off single keys.
	Compact, NoShortcuts bool
	// Document is the pane with the page's JSON and the calls that do the same; ""
	// where the REST API has nothing of the kind.
	Document string
	// SessionLeft is for how much longer one is signed in; 0 unless a person is.
	SessionLeft time.Duration

	User, Tenant, RoleWord string
	// Anonymous pages may be read by people who are not signed in: no areas, and a
	// link to sign in instead of the user menu.
	Anonymous bool
	// AdminHref is where the switch leads to the area of administrators, "" where it does not;
	// ShowSystem says that it offers the system.
	AdminHref  string
	ShowSystem bool

	Area Area
	// Rail defaults to that of the area, with the entry of Here current.
	Rail []RailItem
	// Here is the URL of the rail's current entry.
	Here   string
	Crumbs []ui.Crumb

	Banners []ui.BannerModel
	Flashes []ui.ToastModel

	// Topics of the page's event stream; none means that the page does not live.
	// Cursor is the id of the newest event when the page was made; without it the
	// page fetches its live parts once more when the stream opens.
	Topics []string
	Cursor string
	// Polling uses requests every 5 s instead of the stream.
	Polling bool
	// Refresh, in seconds, reloads the page where scripts do not run; StopRefresh
	// is the same page without it.
	Refresh     int
	StopRefresh string

	Version string
}

// BareModel is the frame of a page without navigation.
type BareModel struct {
	Title   string
	Theme   Theme
	Flashes []ui.ToastModel
	Version string
	// Wide uses the measure of text instead of that of a small form.
	Wide bool
}

// RailItem is an entry of the rail; with Heading set it is a heading.
type RailItem struct {
	Heading string
	Label   string
	Icon    string
	Href    string
	Current bool
	Count   string
	// Needs is the verb that the page asks for, of the areas that not everybody has.
	Needs loom.Verb
}

// Rail gives the entries of an area, with the one leading to here current.
func Rail(area Area, here string) []RailItem {
	items := railOf(area)
	for i := range items {
		items[i].Current = items[i].Href != "" && items[i].Href == here
	}
	return items
}

func railOf(area Area) []RailItem {
	switch area {
	case AreaClusters:
		return []RailItem{
			{Label: "Home", Icon: "home", Href: route.Home()},
			{Label: "Clusters", Icon: "cluster", Href: route.Clusters()},
			{Label: "Activity", Icon: "activity", Href: route.Activity()},
			{Label: "Usage", Icon: "chart", Href: route.Usage()},
			{Heading: "Catalog"},
			{Label: "Templates", Icon: "template", Href: route.Catalog()},
			{Label: "Services", Icon: "box", Href: route.Services()},
		}
	case AreaAdmin:
		return []RailItem{
			{Label: "Overview", Icon: "monitor", Href: route.Admin(), Needs: loom.Administer},
			{Label: "Rollouts", Icon: "branch", Href: route.AdminRollouts(), Needs: loom.Administer},
			{Heading: "Catalog"},
			{Label: "Templates", Icon: "template", Href: route.AdminKind(loom.KindTemplate), Needs: loom.Publish},
			{Label: "Partial templates", Icon: "layers", Href: route.AdminKind(loom.KindPartialTemplate), Needs: loom.Publish},
			{Label: "Services", Icon: "box", Href: route.AdminKind(loom.KindService), Needs: loom.Publish},
			{Label: "Files", Icon: "file", Href: route.AdminResources(), Needs: loom.Publish},
			{Label: "Import and export", Icon: "download", Href: route.AdminTransfer(), Needs: loom.Publish},
			{Heading: "Machines"},
			{Label: "Providers", Icon: "cloud", Href: route.AdminKind(loom.KindProvider), Needs: loom.Publish},
			{Label: "Hardware types", Icon: "cpu", Href: route.AdminKind(loom.KindHardwareType), Needs: loom.Publish},
			{Label: "Image types", Icon: "disk", Href: route.AdminKind(loom.KindImageType), Needs: loom.Publish},
			{Heading: "People"},
			{Label: "Users", Icon: "user", Href: route.AdminUsers(), Needs: loom.Administer},
			{Label: "Groups", Icon: "layers", Href: route.AdminGroups(), Needs: loom.Administer},
			{Label: "Identity", Icon: "key", Href: route.AdminIdentity(), Needs: loom.Administer},
			{Heading: "Tenant"},
			{Label: "Usage", Icon: "chart", Href: route.AdminUsage(), Needs: loom.Administer},
			{Label: "Queue", Icon: "clock", Href: route.AdminQueue(), Needs: loom.Administer},
			{Label: "Hooks", Icon: "external", Href: route.AdminHooks(), Needs: loom.Administer},
			{Label: "Audit log", Icon: "list", Href: route.AdminAudit(), Needs: loom.Administer},
			{Label: "Settings", Icon: "settings", Href: route.AdminSettings(), Needs: loom.Administer},
		}
	case AreaAccount:
		return []RailItem{
			{Label: "Account", Icon: "user", Href: route.Account()},
			{Label: "Preferences", Icon: "settings", Href: route.AccountPreferences()},
			{Label: "API tokens", Icon: "key", Href: route.AccountTokens()},
			{Label: "Sign-in", Icon: "key", Href: route.AccountSignIn()},
			{Label: "Sessions", Icon: "monitor", Href: route.AccountSessions()},
			{Label: "Activity", Icon: "activity", Href: route.AccountActivity()},
		}
	case AreaSystem:
		return []RailItem{
			{Label: "Overview", Icon: "monitor", Href: route.System()},
			{Label: "Status", Icon: "check-circle", Href: route.SystemStatus()},
			{Label: "Tenants", Icon: "layers", Href: route.SystemTenants()},
			{Label: "Clusters", Icon: "cluster", Href: route.SystemClusters()},
			{Label: "Activity", Icon: "activity", Href: route.SystemActivity()},
			{Label: "Usage", Icon: "chart", Href: route.SystemUsage()},
			{Label: "Audit log", Icon: "list", Href: route.SystemAudit()},
			{Heading: "Work"},
			{Label: "Workers", Icon: "server", Href: route.SystemWorkers()},
			{Label: "Queues", Icon: "clock", Href: route.SystemQueues()},
			{Label: "River jobs", Icon: "file", Href: route.SystemJobs()},
			{Heading: "Machines"},
			{Label: "Orphans", Icon: "disk", Href: route.SystemOrphans()},
			{Label: "Plugin types", Icon: "box", Href: route.SystemPlugins()},
		}
	}
	return nil
}

func (m Model) rail() []RailItem {
	if m.Rail != nil {
		return m.Rail
	}
	return Rail(m.Area, m.Here)
}

// areas are those of the switch; whoever has only one needs none.
func (m Model) areas() []RailItem {
	areas := []RailItem{{Label: "Clusters", Href: route.Home(), Current: m.Area == AreaClusters}}
	if m.AdminHref != "" {
		areas = append(areas, RailItem{Label: "Admin", Href: m.AdminHref, Current: m.Area == AreaAdmin})
	}
	if m.ShowSystem {
		areas = append(areas, RailItem{Label: "System", Href: route.System(), Current: m.Area == AreaSystem})
	}
	if len(areas) == 1 {
		return nil
	}
	return areas
}

func (m Model) fullTitle() string {
	title := m.Title
	if m.Section != "" && m.Section != m.Title {
		title += " · " + m.Section
	}
	if m.TitlePrefix != "" {
		title = m.TitlePrefix + " " + title
	}
	return title + " · Loom"
}

func (m Model) events() string {
	if m.Polling {
		return ""
	}
	return route.Events(m.Topics...)
}

// news is where messages for the reader are fetched, "" where nobody is signed in.
func (m Model) news() string {
	if m.Anonymous {
		return ""
	}
	return route.News()
}

// density is what the stylesheet knows of the height of rows.
func (m Model) density() string {
	if m.Compact {
		return "compact"
	}
	return "comfortable"
}

func (m Model) sessionLeft() string { return strconv.Itoa(int(m.SessionLeft.Seconds())) }

func (m Model) refresh() string {
	if m.Refresh <= 0 {
		return ""
	}
	return strconv.Itoa(m.Refresh)
}

// Wrap gives the whole page around content.
func Wrap(m Model, content templ.Component) templ.Component {
	return with(Page(m), content)
}

// Fragment gives the title and the <main> part around content, for htmx.
func Fragment(m Model, content templ.Component) templ.Component {
	return with(mainPart(m), content)
}

// Titled gives content together with the title of the page, for a live part: htmx puts
// the title in place.
func Titled(m Model, content templ.Component) templ.Component {
	return templ.Join(titleElement(m), content)
}

// WrapBare gives a page without navigation around content.
func WrapBare(m BareModel, content templ.Component) templ.Component {
	return with(Bare(m), content)
}

func with(frame, content templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return frame.Render(templ.WithChildren(ctx, content), w)
	})
}

// responseRule is how htmx treats a status.
type responseRule struct {
	Code  string `json:"code"`
	Swap  bool   `json:"swap"`
	Error bool   `json:"error,omitempty"`
}

// htmxConfig is the content of the htmx-config element.
func htmxConfig() string {
	text, err := json.Marshal(struct {
		AllowEval                 bool           `json:"allowEval"`
		AllowScriptTags           bool           `json:"allowScriptTags"`
		IncludeIndicatorStyles    bool           `json:"includeIndicatorStyles"`
		SelfRequestsOnly          bool           `json:"selfRequestsOnly"`
		HistoryCacheSize          int            `json:"historyCacheSize"`
		RefreshOnHistoryMiss      bool           `json:"refreshOnHistoryMiss"`
		HistoryRestoreAsHxRequest bool           `json:"historyRestoreAsHxRequest"`
		AttributesToSettle        []string       `json:"attributesToSettle"`
		ReportValidityOfForms     bool           `json:"reportValidityOfForms"`
		ResponseHandling          []responseRule `json:"responseHandling"`
	}{
		SelfRequestsOnly: true, RefreshOnHistoryMiss: true, ReportValidityOfForms: true,
		AttributesToSettle: []string{"class", "width", "height"},
		ResponseHandling: []responseRule{
			{Code: "204"}, {Code: "[23]..", Swap: true}, {Code: "409", Swap: true}, {Code: "422", Swap: true},
			{Code: "[45]..", Error: true}, {Code: "...", Error: true},
		},
	})
	if err != nil {
		// A literal of plain values always has a JSON form.
		panic(err)
	}
	return string(text)
}
