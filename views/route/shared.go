package route

// Search finds pages and objects (GET), also where scripts do not run.
func Search() string { return "/search" }

// Palette is what is found while one types, as a fragment.
func Palette() string { return "/palette" }

// News tells of what concerns the reader and is over, as a fragment.
func News() string { return "/home/news" }

// Keys lists the keyboard's shortcuts.
func Keys() string { return "/help/keys" }

// AccountActivity is what the signed-in user did.
func AccountActivity() string { return "/account/activity" }

// AccountSessionExtend prolongs the present sign-in (GET asks, POST does).
func AccountSessionExtend() string { return "/account/session" }

// SignIn is the sign-in form for a dialog, where the session ended meanwhile.
func SignIn() string { return "/login/dialog" }

// ClustersBulk is an action on several clusters: "delete", "lease", "restart" or "owner" (GET
// asks, POST does).
func ClustersBulk(verb string) string { return "/clusters/bulk/" + verb }

// Pane is what the REST API gives for a page, with the calls that do the same.
func Pane(page string) string { return Query(page, "as", "pane") }

// Export is a list as a file: format is "csv" or "json-all".
func Export(page, format string) string { return Query(page, "as", format) }

// BannerHide closes a banner for a day (POST).
func BannerHide() string { return "/banners/hide" }
