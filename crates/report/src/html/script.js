(function(){
var tip=document.createElement("div");tip.id="tip";document.body.appendChild(tip);
document.querySelectorAll(".pt").forEach(function(point){
var title=point.querySelector("title");if(title)title.remove();
point.addEventListener("pointerenter",function(){
tip.textContent=point.dataset.tip;tip.style.display="block";
var at=point.querySelector(".hit").getBoundingClientRect(),wide=document.documentElement.clientWidth;
var left=at.left+at.width/2-tip.offsetWidth/2;
tip.style.left=Math.max(6,Math.min(left,wide-tip.offsetWidth-6))+window.scrollX+"px";
tip.style.top=at.top+window.scrollY-tip.offsetHeight-6+"px";});
point.addEventListener("pointerleave",function(){tip.style.display="none";});
});
})();
