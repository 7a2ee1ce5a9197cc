"""The completion scripts for shells. Each passes on what is typed, and shows what `kgctl` answers.

The first line of an answer is `files` where the shell completes names of files; the others are candidates. Answers for bash
are quoted as the typed word is; zsh and fish quote by themselves, and get a help text behind a tab.
"""

from __future__ import annotations

VARIABLE = "_KGCTL_COMPLETE"
BASH = """\
# Completion of kgctl for bash: eval "$(kgctl completion bash)"
_kgctl() {
    local kind line program=$1
    type -P "$program" >/dev/null || program=kgctl
    COMPREPLY=()
    {
        IFS= read -r kind
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done
    } < <(_KGCTL_COMPLETE=bash "$program" "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    if [[ $kind == files ]]; then
        compopt -o default -o filenames 2>/dev/null
    fi
    return 0
}
complete -o nosort -F _kgctl kgctl 2>/dev/null || complete -F _kgctl kgctl
"""
ZSH = """\
#compdef kgctl
# Completion of kgctl for zsh: source <(kgctl completion zsh)
_kgctl() {
    local program=${(Q)words[1]} line
    local -a lines values shown
    (( $+commands[$program] )) || [[ -x $program ]] || program=kgctl
    lines=("${(@f)$(_KGCTL_COMPLETE=zsh $program "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    if [[ $lines[1] == files ]]; then
        _files
        return
    fi
    for line in "${(@)lines[2,-1]}"; do
        [[ -n $line ]] || continue
        values+=("${line%%$'\\t'*}")
        shown+=("${line/$'\\t'/  -- }")
    done
    (( $#values )) && compadd -l -V kgctl -d shown -a values
}
if [[ $funcstack[1] == _kgctl ]]; then
    _kgctl "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _kgctl kgctl
fi
"""
FISH = """\
# Completion of kgctl for fish: kgctl completion fish | source
function __kgctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    command -q $words[1]; or set words[1] kgctl
    set -l lines (env _KGCTL_COMPLETE=fish $words "$current" 2>/dev/null)
    if test "$lines[1]" = files
        __fish_complete_path "$current"
    else
        printf '%s\\n' $lines[2..-1]
    end
end
complete -c kgctl -f -k -a '(__kgctl_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def script_of(shell: str) -> str:
    if shell in SCRIPTS:
        return SCRIPTS[shell]
    from typer._completion_shared import get_completion_script

    return get_completion_script(prog_name="kgctl", complete_var=VARIABLE, shell=shell) + "\n"
