package automator

// CacheDir is Loom's directory on machines; tools have their own below it.
const CacheDir = "/var/cache/loom"

// Directories is shell text for root that makes CacheDir and the name by which
// older scripts know it, where nothing else has that name.
// Every BOOTSTRAP begins with it; on a prepared machine it changes nothing.
const Directories = `{ mkdir -p ` + CacheDir + ` && chmod 0755 ` + CacheDir + `; } || { echo 'the directory ` + CacheDir + ` could not be made' >&2; exit 1; }
[ -e /var/cache/coopr ] || [ -L /var/cache/coopr ] || ln -s loom /var/cache/coopr
`
