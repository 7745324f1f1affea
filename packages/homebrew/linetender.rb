# Built from source: `brew install --build-from-source ./linetender.rb`. @URL@, @SHA256@ and @VERSION@ are filled in when a release is
# published. Not tried on a Mac yet.
class Linetender < Formula
  desc "Keeps an agent's MCP servers alive"
  homepage "@URL@"
  url "@URL@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/cli")
    generate_completions_from_executable(bin/"linetender", "completions")
    system bin/"linetender", "man", buildpath/"man"
    man1.install Dir["man/*"]
  end

  service do
    run [opt_bin/"linetender", "serve"]
    keep_alive successful_exit: false
    environment_variables PATH: std_service_path_env
    error_log_path var/"log/linetender.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/linetender --version")
    assert_match "macOS", shell_output("#{bin}/linetender doctor --system")
  end
end
