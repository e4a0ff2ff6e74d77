//! The places of credentials: keys, tokens, cookies, and histories of typed commands.
//!
//! Files that builds also read for their settings, such as `~/.m2/settings.xml`, `~/.gradle/gradle.properties` or
//! `~/.config/pip/pip.conf`, are not listed: without them builds would behave differently instead of failing.

/// In the user's home folder, by subject.
pub(super) const OF_USER: &[&[&str]] = &[
    // Keys and logins of the system's own tools.
    &[".ssh", ".gnupg", ".netrc", ".pgpass", ".my.cnf", ".mylogin.cnf", ".Xauthority", ".pki", ".age"],
    &[".password-store", ".vault-token", ".subversion/auth", ".config/sops", ".config/age"],
    &[
        ".local/share/keyrings",
        ".local/share/kwalletd",
        ".config/op",
        ".config/1Password",
        ".config/Bitwarden",
    ],
    &[".config/Bitwarden CLI", ".config/keepassxc", ".config/KeePass"],
    &[".step", ".config/filezilla", ".config/remmina", ".config/syncthing", ".local/state/syncthing"],
    // Wallets.
    &[".bitcoin", ".electrum", ".ethereum", ".config/solana", ".config/Exodus", ".local/share/monero"],
    // Code hosting.
    &[".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub", ".config/glab-cli"],
    &[".config/tea"],
    // Clouds, clusters and containers.
    &[".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".passwd-s3fs", ".oci", ".aliyun", ".bluemix"],
    &[".kube", ".docker/config.json", ".config/containers/auth.json", ".config/helm/registry"],
    &[
        ".config/doctl",
        ".config/hcloud",
        ".config/linode-cli",
        ".config/heroku",
        ".fly/config.yml",
        ".config/netlify",
    ],
    &[".config/.wrangler", ".wrangler/config", ".local/share/com.vercel.cli", ".config/stripe"],
    &[".terraform.d/credentials.tfrc.json", ".terraformrc", ".pulumi/credentials.json", ".config/rclone"],
    &[
        ".databrickscfg",
        ".snowsql",
        ".snowflake",
        ".config/snowflake",
        ".sentryclirc",
        ".supabase",
        ".railway",
    ],
    &[".config/fly", ".minikube", ".config/argocd", ".tsh", ".cloudflared", ".ngrok2", ".config/ngrok"],
    // Package registries.
    &[
        ".npmrc",
        ".yarnrc.yml",
        ".pypirc",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".gem/credentials",
    ],
    &[".composer/auth.json", ".config/composer/auth.json", ".m2/settings-security.xml", ".hex/hex.config"],
    &[".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".kaggle"],
    // Browsers, mail and messages.
    &[".mozilla", ".thunderbird", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium"],
    &[".config/BraveSoftware", ".config/microsoft-edge", ".config/opera", ".config/vivaldi", ".librewolf"],
    &["snap/firefox", "snap/chromium", "snap/thunderbird", "snap/brave", "snap/opera"],
    &[".var/app/org.mozilla.firefox", ".var/app/org.mozilla.Thunderbird", ".var/app/com.google.Chrome"],
    &[".var/app/org.chromium.Chromium", ".var/app/com.brave.Browser", ".var/app/com.microsoft.Edge"],
    &[".zen", ".waterfox", ".config/net.imput.helium", ".config/evolution", ".local/share/evolution"],
    &[
        ".var/app/app.zen_browser.zen",
        ".var/app/net.waterfox.waterfox",
        ".var/app/io.gitlab.librewolf-community",
    ],
    &[".var/app/com.vivaldi.Vivaldi", ".var/app/com.opera.Opera", ".var/app/org.gnome.Evolution"],
    &[
        ".config/Signal",
        ".config/Slack",
        ".config/discord",
        ".config/Element",
        ".local/share/TelegramDesktop",
    ],
    // Histories of typed input.
    &[
        ".bash_history",
        ".zsh_history",
        ".zhistory",
        ".history",
        ".sh_history",
        ".ksh_history",
        ".ash_history",
    ],
    &[".local/state/bash", ".local/share/zsh", ".cache/zsh", ".zsh_sessions", ".local/share/atuin"],
    &[".local/share/fish/fish_history", ".config/nushell/history.txt", ".config/nushell/history.sqlite3"],
    &[
        ".python_history",
        ".ipython/profile_default/history.sqlite",
        ".node_repl_history",
        ".irb_history",
        ".php_history",
        ".Rhistory",
    ],
    &[".psql_history", ".mysql_history", ".mariadb_history", ".sqlite_history", ".rediscli_history"],
    &[".dbshell", ".mongodb/mongosh", ".lesshst", ".viminfo"],
    // Other agents and editors.
    &[".claude", ".claude.json", ".config/claude", ".gemini", ".qwen", ".config/github-copilot", ".copilot"],
    &[".codeium", ".continue", ".config/goose", ".local/share/opencode/auth.json", ".aider.conf.yml"],
    &[".local/share/amp", ".config/amp", ".config/opencode", ".crush", ".config/crush", ".local/share/crush"],
    &[".ollama/id_ed25519", ".config/io.datasette.llm", ".config/aichat", ".config/zed", ".cursor/mcp.json"],
    &[".config/Code/User/globalStorage", ".config/Cursor/User/globalStorage", ".config/cursor/auth.json"],
];

/// Readable by root only, which matters if the server is root.
pub(super) const OF_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssl/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/var/lib/kubelet",
    "/var/run/secrets",
    "/run/secrets",
];

/// Variables that move programs' files, and the relevant path in them.
pub(super) const BY_VARIABLE: &[(&str, &str)] = &[
    ("AWS_CONFIG_FILE", ""),
    ("AWS_SHARED_CREDENTIALS_FILE", ""),
    ("AZURE_CONFIG_DIR", ""),
    ("CARGO_HOME", "credentials"),
    ("CARGO_HOME", "credentials.toml"),
    ("CLAUDE_CONFIG_DIR", ""),
    ("CLOUDSDK_CONFIG", ""),
    ("DOCKER_CONFIG", "config.json"),
    ("GH_CONFIG_DIR", ""),
    ("GNUPGHOME", ""),
    ("GOOGLE_APPLICATION_CREDENTIALS", ""),
    ("HISTFILE", ""),
    ("KUBECONFIG", ""),
    ("NETRC", ""),
    ("NPM_CONFIG_USERCONFIG", ""),
    ("PASSWORD_STORE_DIR", ""),
    ("PGPASSFILE", ""),
    ("REGISTRY_AUTH_FILE", ""),
    ("VAULT_TOKEN_PATH", ""),
    ("XAUTHORITY", ""),
];

/// The paths in our home folder that are never shown, even to a thread that works inside it.
pub(super) const OWN_PRIVATE: &[&str] = &[
    ".credentials.json",
    ".env",
    "archived",
    "archived_sessions",
    "auth.json",
    "config.toml",
    "credentials.json",
    "feedback",
    "history.jsonl",
    "hooks.json",
    "host.sqlite",
    "index.sqlite",
    "index.sqlite-wal",
    "jobs",
    "locks",
    "log",
    "mcp-logins",
    "memories",
    "oarlock",
    "outputs",
    "rules",
    "session_index.jsonl",
    "sessions",
    "threads",
];

/// In our home folder: what commands may read.
pub(super) const OWN_SHOWN: &[&str] = &["AGENTS.md", "AGENTS.override.md", "plugins", "prompts", "skills"];
