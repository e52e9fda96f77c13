package page

// ShellType is the automator whose field “script” may name a resource, a path or a command.
const ShellType = "shell"

// ScriptsType is the type of resource that its scripts are.
const ScriptsType = "scripts"
